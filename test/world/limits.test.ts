import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** How a test gives itself, a hook, a wait or what it measures a limit of its own. */
const OWN_LIMITS = [
  /^\s*\}, \d[\d_]{3,}\)$/m,
  /\b(?:it|test|describe)\b[^\n]*, \{ timeout: \d/,
  /\bpoll\([^\n]*\btimeout: \d/,
  /\bwait(?:For|Until)\([^\n]*\btimeout: \d/,
  /\bsetConfig\([^\n]*Timeout: \d/,
  /\{ (?:interval: \d+, )?timeout: TIMEOUT_MS \}/,
  /\binterval: \d+, timeout: \d/,
  /\bperformance\.now\(\) - \w+\)\.toBeLessThan(?:OrEqual)?\(\d/,
]

it('gives no test a limit of its own: on a busy machine it would fail for being late', () => {
  const files = globSync(
    [
      'src/**/*.test.ts',
      'src/**/*-fixture.ts',
      'test/**/*.ts',
      'scripts/*.test.ts',
      'console/src/**/*.test.ts',
    ],
    {
      cwd: root,
      exclude: ['**/node_modules/**'],
    },
  )
  const withLimits = files.filter((path) => {
    const text = readFileSync(`${root}/${path}`, 'utf8')
    return OWN_LIMITS.some((limit) => limit.test(text))
  })
  expect(withLimits).toEqual([])
})
