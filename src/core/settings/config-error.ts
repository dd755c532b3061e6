/**
 * What is wrong with a configuration, said so that it can be put right: where, which key, what was given,
 * what is allowed. All problems of one start are told together. Secrets never appear.
 */

/** A configuration that cannot be used. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  /** One sentence each. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(
      problems.length === 1
        ? `invalid configuration: ${problems[0]}`
        : `invalid configuration, ${problems.length} problems:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`,
    )
    this.problems = problems
  }
}

const SHOWN_CHARACTERS = 80

/** A value as it may be shown: without passwords, not too long, collections only by their kind. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (value !== null && typeof value === 'object') return 'a mapping'
  if (typeof value !== 'string') return String(value)
  const safe = withoutPassword(value)
  return `'${safe.length > SHOWN_CHARACTERS ? `${safe.slice(0, SHOWN_CHARACTERS)}…` : safe}'`
}

/**
 * A URL whose password is replaced by asterisks. Works on text that is no valid URL too, since that is when
 * it is shown: everything from a colon (but not that of '://') to the last '@' counts as password.
 */
export function withoutPassword(url: string): string {
  return url.replace(/:(?!\/\/).*@/s, ':***@').replace(/([?&;][^=&;]*pass[^=&;]*=)[^&;]*/gi, '$1***')
}

/** Says that a key is unknown, and which one was probably meant. */
export function unknownKey(key: string, known: readonly string[]): string {
  const nearest = nearestOf(key, known)
  return nearest === null
    ? `unknown key; known keys here: ${known.join(', ')}`
    : `unknown key; did you mean '${nearest}'?`
}

/** The candidate that differs by a third of its letters at most; case, '-' and '_' do not count. */
function nearestOf(word: string, candidates: readonly string[]): string | null {
  let nearest: string | null = null
  let leastEdits = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    const edits = editDistance(plain(word), plain(candidate))
    if (
      edits < leastEdits &&
      edits <= Math.max(2, Math.floor(candidate.length / 3)) &&
      edits < candidate.length
    ) {
      nearest = candidate
      leastEdits = edits
    }
  }
  return nearest
}

const plain = (word: string): string => word.slice(0, SHOWN_CHARACTERS).toLowerCase().replace(/[-_]/g, '')

/** How many letters must be added, removed or replaced to make `b` of `a`. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** A system error in words. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'no such file or directory'
  if (code === 'EACCES') return 'permission denied'
  if (code === 'EISDIR') return 'it is a directory'
  return error instanceof Error ? error.message : String(error)
}
