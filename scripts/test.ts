/**
 * `npm test`: lint, type check, then all tests; ends at the first step that fails. Further arguments go to
 * the test runner: `npm test -- src/queues` runs the tests of one folder after the two checks.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

interface Step {
  readonly name: string
  readonly command: readonly [program: string, ...args: string[]]
}

const steps: readonly Step[] = [
  { name: 'lint', command: ['biome', 'check', '--error-on-warnings'] },
  { name: 'type check', command: ['tsc', '-p', '.'] },
  { name: 'type check of the console', command: ['tsc', '-p', 'console'] },
  { name: 'type check of its tests', command: ['tsc', '-p', 'test/console'] },
  { name: 'type check of benchmarks', command: ['node', 'scripts/check-bench.ts'] },
  { name: 'tests', command: ['vitest', 'run', ...process.argv.slice(2)] },
]

/** Runs a step with the tools of this repository, which npm puts first on the PATH; gives its exit code. */
function run({ command: [program, ...args] }: Step): number {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const { status, error } = spawnSync(program, args, {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  if (error) console.error(`${program} could not be run: ${error.message}`)
  return status ?? 1
}

for (const [index, step] of steps.entries()) {
  console.log(`\n[${index + 1}/${steps.length}] ${step.name}: ${step.command.join(' ')}`)
  const startedAt = performance.now()
  const code = run(step)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  if (code !== 0) {
    console.error(`\n${step.name} failed after ${seconds} s`)
    process.exit(code)
  }
  console.log(`[${index + 1}/${steps.length}] ${step.name} passed in ${seconds} s`)
}
