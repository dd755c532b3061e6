/**
 * The partners of the invented shop, on a port of this machine: an ERP behind the outbox, a storefront and a warehouse behind the
 * webhooks. They answer well, unless the world says that they are out of order or the message is one they never take.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { World } from './world.ts'

export const PATHS = {
  erp: '/erp/events',
  storefront: '/hooks/storefront',
  warehouse: '/hooks/warehouse',
} as const

/** Events of these types are refused for good by the ERP, and by the storefront. */
export const REFUSED = { erp: 'article.discontinued', storefront: 'voucher.redeemed' } as const

interface Reply {
  readonly status: number
  readonly text: string
}

const OK: Reply = { status: 204, text: '' }

export class Receiver {
  readonly #world: World
  readonly #server: Server

  constructor(world: World) {
    this.#world = world
    this.#server = createServer((request, response) => void this.#answer(request, response))
  }

  /** Listens on loopback, on any free port; gives its address. */
  async listen(): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject)
    this.#server.listen(0, '127.0.0.1', resolve)
    await promise
    // A server that listens on a port has an address with one.
    const { port } = this.#server.address() as AddressInfo
    return `http://127.0.0.1:${port}`
  }

  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    this.#server.closeAllConnections()
    await promise
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const { status, text } = this.#replyTo(request.url ?? '', Buffer.concat(chunks).toString())
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(text)
    } catch {
      // The sender has gone: it tells what came of it.
      response.destroy()
    }
  }

  #replyTo(path: string, body: string): Reply {
    const world = this.#world
    if (path === PATHS.erp && body.includes(REFUSED.erp))
      return { status: 422, text: 'article is discontinued and cannot be booked' }
    if (path === PATHS.erp && world.erpIsDown)
      return { status: 503, text: 'ERP is down for maintenance, try again later' }
    if (path === PATHS.storefront && body.includes(REFUSED.storefront))
      return { status: 400, text: 'unknown event type' }
    if (path === PATHS.warehouse && world.warehouseIsDown) return { status: 503, text: 'no healthy upstream' }
    return OK
  }
}
