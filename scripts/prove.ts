/**
 * `npm run prove`: crash, model, count, walk and plan tests at their full sizes, which are too long for every day.
 * A test takes part by asking for its size (`sizeOf`, `isProof` in test/world/limits.ts). Further arguments go to
 * the test runner: `npm run prove -- test/redrive` proves one folder.
 */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const given = process.argv.slice(2)

/** The test files that have a size to be run in full. */
function provingFiles(): string[] {
  return globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], {
    cwd: root,
    exclude: ['**/node_modules/**'],
  })
    .filter((path) => /\b(sizeOf\(|isProof\b)/.test(readFileSync(`${root}/${path}`, 'utf8')))
    .sort()
}

const files = provingFiles().filter(
  (path) => given.every((each) => each.startsWith('-')) || given.some((each) => path.includes(each)),
)
if (files.length === 0) {
  console.error(`no test with a full size matches ${given.join(' ')}`)
  process.exit(1)
}
console.log(`proving ${files.length} test files at full size\n`)
const options = given.filter((each) => each.startsWith('-'))
const { status, error } = spawnSync('vitest', ['run', ...options, ...files], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, BARTLEBY_PROVE: '1' },
  shell: process.platform === 'win32',
})
if (error) console.error(`vitest could not be run: ${error.message}`)
process.exit(status ?? 1)
