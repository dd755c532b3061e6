import { defineConfig } from 'vitest/config'
import { PATIENCE_MS, sizeOf, TEST_LIMIT_MS } from './test/world/limits.ts'

// The build wants the counts of every run; each run writes a file of its own there.
const reports = process.env.BARTLEBY_TEST_REPORTS

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'scripts/**/*.test.ts', 'console/src/**/*.test.ts'],
    // These need packages of their own and are run by their own scripts.
    exclude: ['test/azure/**', '**/node_modules/**'],
    globalSetup: 'test/world/global-setup.ts',
    setupFiles: 'test/world/declared-sources.ts',
    reporters: reports
      ? ['default', ['json', { outputFile: `${reports}/${process.pid}.json` }]]
      : ['default'],
    pool: 'forks',
    // Two cores are what a small build machine has; PostgreSQL and the servers under test share them. A third file fills them while
    // others wait for time to pass or a process to end. Proofs measure how quick things are.
    maxWorkers: sizeOf(3, 2),
    // Loading the sources anew for every file takes longer than most files run; tests keep no global state.
    isolate: false,
    testTimeout: TEST_LIMIT_MS,
    hookTimeout: TEST_LIMIT_MS,
    teardownTimeout: PATIENCE_MS,
    expect: { poll: { timeout: PATIENCE_MS } },
  },
})
