/** A gate in front of an account that lets calls through, or answers in its place: busy, forbidden, gone, or never. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connectionOf } from './azurite.ts'

/** `pass`: as if there were no gate. `deaf`: the call is carried out, and its answer lost. */
export type Way =
  | 'pass'
  | 'away'
  | 'deaf'
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }

export type Decide = (call: {
  readonly method: string
  readonly path: string
  readonly service: 'tables' | 'queues'
}) => Way

export interface Gate {
  readonly connectionString: string
  /** Calls that came, whatever was answered. */
  readonly calls: number
  decide(how: Decide): void
  close(): Promise<void>
}

export async function gateTo(ports: { readonly tables: number; readonly queues: number }): Promise<Gate> {
  let decide: Decide = () => 'pass'
  let calls = 0
  const open = async (service: 'tables' | 'queues') => {
    const server = createServer((incoming, answer) => {
      calls++
      const way = decide({ method: incoming.method ?? '', path: incoming.url ?? '', service })
      if (way === 'away') incoming.socket.destroy()
      else if (typeof way === 'object') answer.writeHead(way.status, way.headers ?? {}).end(way.body ?? '')
      else carry(incoming, answer, ports[service], way === 'deaf')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return server
  }
  const [tables, queues] = [await open('tables'), await open('queues')]
  // Both listen.
  const portOf = (server: typeof tables) => (server.address() as AddressInfo).port
  return {
    connectionString: connectionOf(portOf(tables), portOf(queues)),
    get calls() {
      return calls
    },
    decide: (how) => {
      decide = how
    },
    async close() {
      for (const server of [tables, queues]) {
        server.closeAllConnections()
        server.close()
        await once(server, 'close')
      }
    },
  }
}

function carry(incoming: IncomingMessage, answer: ServerResponse, port: number, isDeaf: boolean): void {
  const { method, url: path, headers } = incoming
  const onward = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
    if (isDeaf) {
      response.resume()
      response.once('end', () => incoming.socket.destroy())
      return
    }
    answer.writeHead(response.statusCode ?? 502, response.headers)
    response.pipe(answer)
  })
  onward.once('error', () => incoming.socket.destroy())
  incoming.pipe(onward)
}
