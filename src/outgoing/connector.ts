/**
 * How connections are opened: one message at a time on each, over HTTP/1.1, so that what happens to one happens to no other;
 * and never to an address that is refused, whatever name leads to it.
 */
import type { LookupAddress, LookupOptions } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction, Socket } from 'node:net'
import type { buildConnector, Client } from 'undici'

/** What lies below: looking names up, and opening connections. Tests put a stand-in in its place. */
export interface Network {
  lookup(host: string, options: LookupOptions): Promise<LookupAddress[]>
  opener(options: OpenerOptions): Promise<buildConnector.connector>
}

interface OpenerOptions {
  readonly timeout: number
  readonly allowH2: false
  /** Finds the addresses of names. */
  readonly lookup: LookupFunction
}

/** The system's. Loading undici takes 0.2 s and 25 MB, which applications that deliver otherwise need not spend. */
export const SYSTEM_NETWORK: Network = {
  lookup: (host, options) => lookup(host, { ...options, all: true }),
  opener: async (options) => (await import('undici')).buildConnector(options),
}

export interface ConnectorTerms {
  /** How long opening may take, looking up its name included. */
  readonly connectMs: number
  /** Whether an address must not be connected to. Default: none is refused. */
  readonly refuses?: (address: string) => boolean
  /** Default: the system's. */
  readonly network?: Network
}

/** The receiver is at an address that must not be connected to. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'

  constructor(host: string) {
    super(`the address of ${host} lies in a range that is refused here; refusedAddresses says which are`)
  }
}

/** Opens connections to one origin. */
export interface Connector {
  open(longestIdleMs: number): Client
  /** Ends a client with its connection, also while that is being opened. */
  abandon(client: Client, reason: Error): Promise<void>
}

/** How connections to this origin are opened. */
export async function connectorOf(origin: string, terms: ConnectorTerms): Promise<Connector> {
  const { Client } = await import('undici')
  const { connectMs, refuses = () => false, network = SYSTEM_NETWORK } = terms
  // One for all, so that TLS sessions can be taken up again.
  const connect = await network.opener({
    timeout: connectMs,
    allowH2: false,
    lookup: guarded(network, refuses),
  })
  const opening = new WeakMap<Client, Socket>()
  return {
    open(longestIdleMs) {
      const opened = (to: buildConnector.Options, done: buildConnector.Callback): void => {
        // A literal address is looked up by nobody.
        if (isIP(to.hostname) !== 0 && refuses(to.hostname)) {
          queueMicrotask(() => done(new AddressRefused(to.hostname), null))
          return
        }
        // Undocumented, and of use only to end it early: the connector gives the socket that it opens.
        const socket: unknown = connect(to, done)
        if (socket instanceof Socket) opening.set(client, socket)
      }
      const client: Client = new Client(origin, {
        connect: opened,
        pipelining: 1,
        keepAliveMaxTimeout: longestIdleMs,
        // The exchange has its own limits of time.
        headersTimeout: 0,
        bodyTimeout: 0,
      })
      return client
    },
    async abandon(client, reason) {
      const ended = client.destroy(reason)
      const socket = opening.get(client)
      // The client ends a connection that it has, and forgets one that is still being opened.
      if (socket?.connecting === true) socket.destroy()
      await ended
    },
  }
}

/**
 * Looks names up and leaves out the addresses that are refused. Those who want the same name at the same time share one look-up:
 * each takes one of the few threads of the process, and a name server that does not answer must not take them all.
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
