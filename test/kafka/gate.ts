/** A gate before a broker that a test can shut, or let only questions through. The broker is to tell its clients the gate's port. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Gate {
  readonly port: number
  /** Connections break, and new ones are refused. */
  shut(): void
  open(): void
  /** What the broker says on present connections goes nowhere; it hears all the same. */
  deafen(): void
  close(): Promise<void>
}

/** Puts a gate before the port. */
export async function gateTo(port: number): Promise<Gate> {
  const pairs = new Set<readonly [near: Socket, far: Socket]>()
  let isShut = false
  const listener = createServer((near) => {
    // Broken connections are what this gate is for.
    near.on('error', () => near.destroy())
    if (isShut) {
      near.destroy()
      return
    }
    const far = connect(port, '127.0.0.1')
    far.on('error', () => far.destroy())
    const pair = [near, far] as const
    pairs.add(pair)
    near.pipe(far)
    far.pipe(near)
    near.once('close', () => {
      pairs.delete(pair)
      far.destroy()
    })
    far.once('close', () => near.destroy())
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('the gate has no port')
  const breakAll = () => {
    for (const [near] of pairs) near.destroy()
  }
  return {
    port: address.port,
    shut() {
      isShut = true
      breakAll()
    },
    open() {
      isShut = false
    },
    deafen() {
      for (const [near, far] of pairs) {
        far.unpipe(near)
        far.resume()
      }
    },
    async close() {
      const closed = once(listener, 'close')
      listener.close()
      breakAll()
      await closed
    },
  }
}
