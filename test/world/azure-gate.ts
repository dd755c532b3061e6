/** A gate in front of an account that lets calls through, or answers in its place: busy, forbidden, gone, or never. Servers can be stopped at it between two steps. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connectionOf } from './azurite.ts'

/**
 * `pass`: as if there were no gate. `deaf`: the call is carried out, and its answer lost. `hold`: nobody ever hears of it again; `mute`:
 * the same, and it is carried out.
 */
export type Way =
  | 'pass'
  | 'away'
  | 'deaf'
  | 'hold'
  | 'mute'
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
  /** Resolves when a call is held, or was carried out in silence. */
  readonly held: Promise<void>
  decide(how: Decide): void
  close(): Promise<void>
}

export async function gateTo(ports: { readonly tables: number; readonly queues: number }): Promise<Gate> {
  let decide: Decide = () => 'pass'
  let calls = 0
  const held = Promise.withResolvers<void>()
  const open = async (service: 'tables' | 'queues') => {
    const server = createServer((incoming, answer) => {
      calls++
      const way = decide({ method: incoming.method ?? '', path: incoming.url ?? '', service })
      if (way === 'away') incoming.socket.destroy()
      else if (typeof way === 'object') answer.writeHead(way.status, way.headers ?? {}).end(way.body ?? '')
      else if (way === 'hold') held.resolve()
      else carry(incoming, answer, ports[service], way, held.resolve)
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
    held: held.promise,
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

function carry(
  incoming: IncomingMessage,
  answer: ServerResponse,
  port: number,
  way: 'pass' | 'deaf' | 'mute',
  silenced: () => void,
): void {
  const { method, url: path, headers } = incoming
  const onward = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
    if (way !== 'pass') {
      response.resume()
      response.once('end', () => (way === 'deaf' ? incoming.socket.destroy() : silenced()))
      return
    }
    answer.writeHead(response.statusCode ?? 502, response.headers)
    response.pipe(answer)
  })
  onward.once('error', () => incoming.socket.destroy())
  incoming.pipe(onward)
}

/** How far a letter is on its way back when its server is stopped: at the call that stands behind the step. */
export const STEPS = ['claimed', 'marked', 'intended', 'sent', 'settled'] as const
export type Step = (typeof STEPS)[number]

/** Stops a server that sends one letter back, and does nothing else, behind a step. */
export function stopBehind(step: Step): Decide {
  let hasLeft = false
  return ({ service, method }) => {
    const isRead = service === 'tables' && method === 'GET'
    if (step === 'claimed' && isRead) return 'hold'
    if (step === 'marked' && service === 'tables' && !isRead) return 'mute'
    if (step === 'settled' && hasLeft) return 'hold'
    if (service !== 'queues' || method !== 'POST') return 'pass'
    hasLeft = true
    return step === 'intended' ? 'hold' : step === 'sent' ? 'mute' : 'pass'
  }
}
