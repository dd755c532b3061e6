/** Whoever looks for a place by a README, or by the ten questions of CONTRIBUTING, finds a file there. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const files = globSync('{src,test,scripts,bench,console/src}/**/*.{ts,tsx}', {
  cwd: ROOT,
  exclude: ['**/node_modules/**'],
}).map((path) => path.replaceAll('\\', '/'))

/** Files as a text names them: `change.ts`, `sql/lease.ts`, `src/core/errors.ts`. */
const namedIn = (path: string): readonly string[] => [
  ...new Set(
    [...readFileSync(join(ROOT, path), 'utf8').matchAll(/`([\w./-]+\.tsx?)`/g)].map(([, name = '']) => name),
  ),
]

/** Whether a file is below a folder, in whatever room, or at this path. */
const isThere = (name: string, folder: string): boolean =>
  files.some(
    (file) =>
      [name, `src/${name}`, posix.join(folder, name)].includes(file) ||
      (file.startsWith(`${folder}/`) && file.endsWith(`/${name}`)),
  )

describe('every README below src', () => {
  it.each(globSync('src/**/README.md', { cwd: ROOT }))('%s names files that there are', (path) => {
    expect(namedIn(path).filter((name) => !isThere(name, dirname(path)))).toEqual([])
  })
})

it('CONTRIBUTING names files that there are', () => {
  const named = namedIn('CONTRIBUTING.md').filter((name) => name.includes('/') && !name.includes('NAME'))
  expect(named.filter((name) => !files.includes(name))).toEqual([])
})
