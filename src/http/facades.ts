/** The APIs of a server side by side: the path of a request decides whose it is, and so how it is answered where no route does it. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { envelopeFacade, sayWhen } from '../api/envelope.ts'
import { type Facade, pathOf, sendPlainError } from '../api/facade.ts'
import type { Clock } from '../core/clock.ts'
import { type BartlebyError, failure } from '../core/errors.ts'

/** Where the files of the console are. */
export const ASSETS = '/assets/'

/** Where no API has what is left. */
const plainFacade: Facade = { sendError: (_request, reply, error) => sendPlainError(reply, error) }

/** What belongs to no API: health, documents, files of the console. */
const serverFacade: Facade = {
  ...plainFacade,
  owns: (path) =>
    path === '/docs' || path === '/openapi.json' || path.startsWith('/health/') || path.startsWith(ASSETS),
  // A file of the page that is missing is just missing.
  hasPage: (path) => !path.startsWith(ASSETS),
}

export class Facades {
  readonly #owners: readonly Facade[]
  readonly #rest: Facade

  /** `brought` are those of sources. */
  constructor(brought: readonly Facade[], clock: Clock) {
    const all = [envelopeFacade(clock), ...brought, serverFacade]
    this.#owners = all.filter(({ owns }) => owns !== undefined)
    this.#rest = all.find(({ owns }) => owns === undefined) ?? plainFacade
  }

  /** The one that has what is left comes last. */
  get all(): readonly Facade[] {
    return [...this.#owners, this.#rest]
  }

  of(url: string): Facade {
    const path = pathOf(url)
    return this.#owners.find((facade) => facade.owns?.(path)) ?? this.#rest
  }

  /** Answers with an error. */
  sendError(request: FastifyRequest, reply: FastifyReply, error: BartlebyError): void {
    reply.header('x-content-type-options', 'nosniff')
    sayWhen(reply, error)
    this.of(request.url).sendError(request, reply, error)
  }

  /** Answers what no route answers. */
  answerUnknown(request: FastifyRequest, reply: FastifyReply): void {
    const facade = this.of(request.url)
    if (facade.answerUnknown !== undefined) facade.answerUnknown(request, reply)
    else this.sendError(request, reply, failure('path_unknown', { path: pathOf(request.url) }))
  }

  /** A browser that opens an address which is no call: it gets the page. */
  isPage({ method, headers, is404, url }: FastifyRequest): boolean {
    if (!is404 || method !== 'GET') return false
    const path = pathOf(url)
    if (path === '/') return true
    return headers.accept?.includes('text/html') === true && this.of(url).hasPage?.(path) === true
  }
}
