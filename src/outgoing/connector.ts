/** How connections are opened: HTTP/1.1, one message at a time on each, and never to a refused address, whatever name leads to it. */
import type { LookupAddress, LookupOptions } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction, Socket } from 'node:net'
import type { buildConnector, Client } from 'undici'

/** Name look-up and connecting; tests replace it. */
export interface Network {
  lookup(host: string, options: LookupOptions): Promise<LookupAddress[]>
  opener(options: OpenerOptions): Promise<buildConnector.connector>
}

interface OpenerOptions {
  readonly timeout: number
  readonly allowH2: false
  readonly lookup: LookupFunction
}

/** The system's. Loading undici takes 0.2 s and 25 MB, which applications with other transports need not spend. */
export const SYSTEM_NETWORK: Network = {
  lookup: (host, options) => lookup(host, { ...options, all: true }),
  opener: async (options) => (await import('undici')).buildConnector(options),
}

export interface ConnectorTerms {
  /** Limit for opening, name look-up included. */
  readonly connectMs: number
  /** Whether an address must not be connected to. Default: none. */
  readonly refuses?: (address: string) => boolean
  /** Default: the system's. */
  readonly network?: Network
}

export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'

  constructor(host: string) {
    super(`the address of ${host} lies in a range that is refused here; refusedAddresses says which are`)
  }
}

export interface Connector {
  open(longestIdleMs: number): Client
  /** Ends a client with its connection, also while that is being opened. */
  abandon(client: Client, reason: Error): Promise<void>
}

export async function connectorOf(origin: string, terms: ConnectorTerms): Promise<Connector> {
  const { Client } = await import('undici')
  const { connectMs, refuses = () => false, network = SYSTEM_NETWORK } = terms
  // One for all, so that TLS sessions can be resumed.
  const connect = await network.opener({
    timeout: connectMs,
    allowH2: false,
    lookup: guarded(network, refuses),
  })
  const opening = new WeakMap<Client, Socket>()
  return {
    open(longestIdleMs) {
      const opened = (to: buildConnector.Options, done: buildConnector.Callback): void => {
        // A literal address is not looked up.
        if (isIP(to.hostname) !== 0 && refuses(to.hostname)) {
          queueMicrotask(() => done(new AddressRefused(to.hostname), null))
          return
        }
        // Undocumented, and needed only to end it early: the connector returns the socket it opens.
        const socket: unknown = connect(to, done)
        if (socket instanceof Socket) opening.set(client, socket)
      }
      const client: Client = new Client(origin, {
        connect: opened,
        pipelining: 1,
        keepAliveMaxTimeout: longestIdleMs,
        // The exchange has its own time limits.
        headersTimeout: 0,
        bodyTimeout: 0,
      })
      return client
    },
    async abandon(client, reason) {
      const ended = client.destroy(reason)
      const socket = opening.get(client)
      // The client forgets a connection that is still being opened.
      if (socket?.connecting === true) socket.destroy()
      await ended
    },
  }
}

/**
 * Looks names up without refused addresses. Concurrent look-ups of a name share one: each takes one of the process's few threads, and a
 * silent name server must not take them all.
 */
function guarded(network: Network, refuses: (address: string) => boolean): LookupFunction {
  const pending = new Map<string, Promise<LookupAddress[]>>()
  const find = (host: string, options: LookupOptions): Promise<LookupAddress[]> => {
    const key = `${options.family ?? 0} ${options.hints ?? 0} ${host}`
    const found = pending.get(key) ?? network.lookup(host, options).finally(() => pending.delete(key))
    pending.set(key, found)
    return found
  }
  return (host, { all, ...options }, found) => {
    find(host, options).then(
      (addresses) => {
        const [first, ...others] = addresses.filter(({ address }) => !refuses(address))
        if (first === undefined) found(new AddressRefused(host), [])
        else if (all === true) found(null, [first, ...others])
        else found(null, first.address, first.family)
      },
      (error: Error) => found(error, []),
    )
  }
}
