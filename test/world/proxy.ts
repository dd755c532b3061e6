/**
 * A door between a server and its store or broker that a test can shut: connections break and new ones are refused. Or block: the
 * connections that there are stay open and nothing comes through them any more.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Door {
  /** The given URL with the address of the door in place of the store's. */
  readonly url: string
  readonly port: number
  /** Connections that were tried. */
  readonly knocks: number
  shut(): void
  /** Present connections fall silent for good; new ones work. */
  block(): void
  /** What is answered on present connections goes nowhere; what is said still arrives. */
  deafen(): void
  open(): void
  close(): Promise<void>
}

/** Puts a door in front of what listens at `url`. */
export async function doorTo(url: string): Promise<Door> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  const pairs = new Map<Socket, Socket>()
  let isShut = false
  let knocks = 0
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    // A broken connection is what this door is for.
    socket.on('error', () => socket.destroy())
  }
  const listener = createServer((near) => {
    knocks += 1
    keep(near)
    if (isShut) return void near.destroy()
    const far = connect(Number(target.port), target.hostname)
    keep(far)
    near.pipe(far)
    far.pipe(near)
    pairs.set(far, near)
    near.once('close', () => {
      pairs.delete(far)
      far.destroy()
    })
    far.once('close', () => near.destroy())
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('the door has no port')
  const doorUrl = new URL(url)
  doorUrl.hostname = '127.0.0.1'
  doorUrl.port = String(address.port)
  const breakAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: doorUrl.href,
    port: address.port,
    get knocks() {
      return knocks
    },
    shut() {
      isShut = true
      breakAll()
    },
    block() {
      for (const socket of sockets) socket.unpipe().pause()
    },
    deafen() {
      for (const [far, near] of pairs) far.unpipe(near).resume()
    },
    open() {
      isShut = false
    },
    async close() {
      const closed = once(listener, 'close')
      listener.close()
      breakAll()
      await closed
    },
  }
}
