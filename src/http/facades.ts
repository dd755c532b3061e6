/** The APIs of a server side by side. The path of a request decides which one answers where no route does. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { envelopeFacade, sayWhen } from '../api/envelope.ts'
import { type Facade, pathOf, sendPlainError } from '../api/facade.ts'
import type { Clock } from '../core/clock.ts'
import { type BartlebyError, failure } from '../core/errors.ts'

export const ASSETS = '/assets/'

/** Where no API takes what is left. */
const plainFacade: Facade = { sendError: (_request, reply, error) => sendPlainError(reply, error) }

/** Health, documents and files of the console. */
const serverFacade: Facade = {
  ...plainFacade,
  owns: (path) =>
    path === '/docs' || path === '/openapi.json' || path.startsWith('/health/') || path.startsWith(ASSETS),
  // A missing file of the page is just missing.
  hasPage: (path) => !path.startsWith(ASSETS),
}

export class Facades {
  readonly #owners: readonly Facade[]
  readonly #rest: Facade

  /** `brought` come from sources. */
  constructor(brought: readonly Facade[], clock: Clock) {
    const all = [envelopeFacade(clock), ...brought, serverFacade]
    this.#owners = all.filter(({ owns }) => owns !== undefined)
    this.#rest = all.find(({ owns }) => owns === undefined) ?? plainFacade
  }

  /** The one that takes what is left comes last. */
  get all(): readonly Facade[] {
    return [...this.#owners, this.#rest]
  }

  of(url: string): Facade {
    const path = pathOf(url)
    return this.#owners.find((facade) => facade.owns?.(path)) ?? this.#rest
  }

  sendError(request: FastifyRequest, reply: FastifyReply, error: BartlebyError): void {
    reply.header('x-content-type-options', 'nosniff')
    sayWhen(reply, error)
    this.of(request.url).sendError(request, reply, error)
  }

  answerUnknown(request: FastifyRequest, reply: FastifyReply): void {
    const facade = this.of(request.url)
    if (facade.answerUnknown !== undefined) facade.answerUnknown(request, reply)
    else this.sendError(request, reply, failure('path_unknown', { path: pathOf(request.url) }))
  }

  /** A browser opening an address that is no call gets the page. */
  isPage({ method, headers, is404, url }: FastifyRequest): boolean {
    if (!is404 || method !== 'GET') return false
    const path = pathOf(url)
    if (path === '/') return true
    return headers.accept?.includes('text/html') === true && this.of(url).hasPage?.(path) === true
  }
}
