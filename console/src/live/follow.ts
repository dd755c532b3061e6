/** Follows a stream of events for as long as it is wanted: a connection that ends, fails or falls silent is made anew. */
import { type StreamEvent, streamReader } from './event-stream.ts'

export interface Follower {
  /** Something came, be it a comment. */
  heard(): void
  event(event: StreamEvent): void
  /** The connection is gone; it is tried again. */
  lost(): void
}

const AGAIN_MS = 3_000
/** The server sends a sign of life every 15 s: a connection without one for this long is dead, whatever it seems. */
const SILENT_MS = 40_000

/** Follows `path` until `signal` says otherwise. Never rejects. */
export async function follow(path: string, follower: Follower, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const connection = new AbortController()
    await connect(path, follower, connection, AbortSignal.any([signal, connection.signal])).catch(() => {})
    connection.abort()
    if (signal.aborted) return
    follower.lost()
    await pause(AGAIN_MS, signal)
  }
}

async function connect(
  path: string,
  follower: Follower,
  connection: AbortController,
  signal: AbortSignal,
): Promise<void> {
  const answer = await fetch(path, {
    credentials: 'same-origin',
    headers: { accept: 'text/event-stream' },
    cache: 'no-store',
    signal,
  })
  if (!answer.ok || answer.body === null) return
  const read = streamReader()
  const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let silence: ReturnType<typeof setTimeout> | undefined
  try {
    for (;;) {
      silence = setTimeout(() => connection.abort(), SILENT_MS)
      const { done, value } = await pieces.read()
      clearTimeout(silence)
      if (done) return
      follower.heard()
      for (const event of read(value)) follower.event(event)
    }
  } finally {
    clearTimeout(silence)
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
