/** Server-sent events as they come in over a connection, piece by piece. Pure. */

export interface StreamEvent {
  readonly name: string
  readonly text: string
}

/**
 * A reader of one connection: give it each piece, it gives the events that are complete. Comments are signs of life only; the browser's
 * own reader would swallow them, which is why there is this one.
 */
export function streamReader(): (piece: string) => readonly StreamEvent[] {
  let rest = ''
  return (piece) => {
    const blocks = (rest + piece).replaceAll('\r\n', '\n').split('\n\n')
    rest = blocks.pop() ?? ''
    return blocks.flatMap(eventIn)
  }
}

function eventIn(block: string): StreamEvent[] {
  let name = 'message'
  const lines: string[] = []
  for (const line of block.split('\n')) {
    const [, field, value = ''] = /^(\w+):? ?(.*)$/.exec(line) ?? []
    if (field === 'event') name = value
    else if (field === 'data') lines.push(value)
  }
  return lines.length === 0 ? [] : [{ name, text: lines.join('\n') }]
}
