/** How the vectors write what they expect: placeholders for what differs from run to run, and names of saved values. */
import { expect } from 'vitest'

const PLACEHOLDERS: Readonly<Record<string, string>> = {
  '<xid>': '[0-9a-v]{19}[0g]',
  '<time>': '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z',
  '<date>': '(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \\d\\d [A-Z][a-z]{2} \\d{4} \\d\\d:\\d\\d:\\d\\d GMT',
  '<token12>': '[A-Za-z0-9]{12}',
  '<cursor>': '(?:[A-Za-z0-9]|%2B|%2F|%3D)+',
  '<any>': '[\\s\\S]*',
}

/** What was saved by earlier steps, and where the receiver is. */
export type Saved = Map<string, string>

/** The text with saved values put in the places of their names; `NOW+60s` is a minute from now. */
export function filled(text: string, saved: Saved, at: (seconds: number) => string): string {
  return text.replaceAll(/\$\{([^}]+)\}/g, (_, name: string) => {
    const seconds = /^NOW\+(\d+)s$/.exec(name)?.[1]
    return seconds === undefined
      ? (saved.get(name) ?? expect.fail(`no ${name} was saved`))
      : at(Number(seconds))
  })
}

/** Every text in it filled. */
export function allFilled<T>(value: T, fill: (text: string) => string): T {
  if (typeof value === 'string') return fill(value) as T // a text for a text
  if (Array.isArray(value)) return value.map((each) => allFilled(each, fill)) as T // a list for a list
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, each]) => [key, allFilled(each, fill)])
  return Object.fromEntries(entries) as T // the same keys
}

const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** What an expected text matches. A star matches anything in a text that has some, because no text that is exact does. */
function patternOf(expected: string): RegExp {
  const parts = expected.split(/(<[a-z0-9]+>|\*)/)
  const source = parts.map((part) => (part === '*' ? '[\\s\\S]*' : (PLACEHOLDERS[part] ?? escaped(part))))
  return new RegExp(`^${source.join('')}$`)
}

/** Where a value differs from what is expected: one line per difference. */
export function differences(expected: unknown, actual: unknown, where = ''): string[] {
  const differs = [`${where || 'it'}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`]
  if (expected === '<any>') return []
  if (typeof expected === 'string') {
    return typeof actual === 'string' && patternOf(expected).test(actual) ? [] : differs
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return differs
    return expected.flatMap((each, i) => differences(each, actual[i], `${where}[${i}]`))
  }
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null || Array.isArray(actual)) return differs
    const given = new Map<string, unknown>(Object.entries(actual))
    // Extra keys are allowed, except where none are expected at all.
    if (Object.keys(expected).length === 0) return given.size === 0 ? [] : differs
    return Object.entries(expected).flatMap(([key, each]) =>
      differences(each, given.get(key), where === '' ? key : `${where}.${key}`),
    )
  }
  return Object.is(expected, actual) ? [] : differs
}

/** The value at a path such as `Result.0.ID`. */
export function valueAt(value: unknown, path: string): string {
  let found = value
  for (const key of path.split('.')) {
    const entries = typeof found === 'object' && found !== null ? Object.entries(found) : []
    found = entries.find(([name]) => name === key)?.[1]
  }
  return typeof found === 'string' ? found : expect.fail(`there is no text at ${path}`)
}
