/**
 * A pooler at its plainest: one connection to PostgreSQL, lent to one client after the other and never reset, as poolers in
 * transaction mode do. The first client signs in at the server itself; later ones are let in with what the server said then.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Pooler {
  /** The address of the same database through the pooler. */
  readonly url: string
  close(): Promise<void>
}

const TERMINATE = 'X'.charCodeAt(0)
const PARAMETER_STATUS = 'S'.charCodeAt(0)
const READY_FOR_QUERY = 'Z'.charCodeAt(0)
const SIGNED_IN = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0])
const READY = Buffer.from([READY_FOR_QUERY, 0, 0, 0, 5, 0x49])

/** Lends one connection to the server of `url`. */
export async function startPooler(url: string): Promise<Pooler> {
  const target = new URL(url)
  const server = connect(Number(target.port), target.hostname)
  await once(server, 'connect')
  const parameters: Buffer[] = []
  let isSignedIn = false
  let client: Socket | undefined
  splitMessages(server, false, (message) => {
    if (!isSignedIn && message[0] === PARAMETER_STATUS) parameters.push(message)
    isSignedIn ||= message[0] === READY_FOR_QUERY
    client?.write(message)
  })
  const listener = createServer((socket) => {
    client = socket
    let isGreeting = true
    socket.on('error', () => {})
    splitMessages(socket, true, (message) => {
      const isStartup = isGreeting
      isGreeting = false
      if (isStartup && isSignedIn) socket.write(Buffer.concat([SIGNED_IN, ...parameters, READY]))
      else if (isStartup || message[0] !== TERMINATE) server.write(message)
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  const pooled = new URL(url)
  pooled.port = String(address.port)
  return {
    url: pooled.href,
    async close() {
      server.destroy()
      listener.close()
      await once(listener, 'close')
    },
  }
}

/** Calls `take` with each whole message; the first of a client has no letter in front. */
function splitMessages(socket: Socket, startsBare: boolean, take: (message: Buffer) => void): void {
  let bare = startsBare
  let rest: Buffer = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const head = bare ? 0 : 1
      if (rest.length < head + 4) return
      const length = head + rest.readUInt32BE(head)
      if (rest.length < length) return
      bare = false
      take(rest.subarray(0, length))
      rest = rest.subarray(length)
    }
  })
}
