/**
 * What the webhook API answers where no call is: a wrong method is told the right ones, a slash too many is sent to the path
 * without it, everything else is unknown. Paths are taken as they were sent; nothing is resolved.
 */
import type { Answer } from '../../http/exact-answer.ts'
import { methodNotAllowed, methodsOf, moved, UNKNOWN_PATH } from './reply.ts'

/** A path as a list of its segments; null stands for any text. */
type Pattern = readonly (string | null)[]

interface KnownPath {
  readonly pattern: Pattern
  /** In the form of an `Allow` header. */
  readonly allow: string
}

const segmentsOf = (path: string): readonly string[] => path.split('/').slice(1)

export class WebhookPaths {
  readonly #known: readonly KnownPath[]

  constructor(calls: readonly { readonly method: string; readonly path: string }[]) {
    this.#known = [...new Set(calls.map(({ path }) => path))].map((path) => ({
      pattern: segmentsOf(path).map((segment) => (segment.startsWith(':') ? null : segment)),
      allow: [...calls.filter((call) => call.path === path).map(({ method }) => method), 'OPTIONS']
        .sort()
        .join(', '),
    }))
  }

  /** The answer to a request that no call takes; `url` may have a query. */
  answer(method: string, url: string): Answer {
    const end = url.search(/[?#]/)
    const path = end < 0 ? url : url.slice(0, end)
    const allow = this.#allowed(path)
    if (allow !== undefined) return method === 'OPTIONS' ? methodsOf(allow) : methodNotAllowed(allow)
    if (path.endsWith('/') && this.#allowed(path.slice(0, -1)) !== undefined) {
      return moved(method, `${path.slice(0, -1)}${url.slice(path.length)}`)
    }
    return UNKNOWN_PATH
  }

  /** Whether a call is at this path, or at it without its last slash. */
  has(path: string): boolean {
    return [path, path.replace(/\/$/, '')].some((each) => this.#allowed(each) !== undefined)
  }

  #allowed(path: string): string | undefined {
    const segments = segmentsOf(path)
    return this.#known.find(({ pattern }) => fits(pattern, segments))?.allow
  }
}

const fits = (pattern: Pattern, segments: readonly string[]): boolean =>
  pattern.length === segments.length &&
  pattern.every((wanted, index) => (wanted === null ? segments[index] !== '' : segments[index] === wanted))
