/** Lines of a stream of bytes. Only line feeds end them: JSON may hold the other characters that readers of text end lines at. */
import type { Readable } from 'node:stream'

const LINE_FEED = 10

/** Each line without its end; a last one without an end counts too. */
export async function* byteLines(stream: Readable): AsyncGenerator<Buffer, void, undefined> {
  let begun: Buffer[] = []
  for await (const given of stream) {
    const chunk: Buffer = typeof given === 'string' ? Buffer.from(given) : given
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      yield Buffer.concat([...begun, chunk.subarray(start, end)])
      begun = []
      start = end + 1
    }
    if (start < chunk.length) begun.push(chunk.subarray(start))
  }
  if (begun.length > 0) yield Buffer.concat(begun)
}
