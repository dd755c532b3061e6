/** Runs once per test run: one PostgreSQL for all test files. */
import type { TestProject } from 'vitest/node'
import { startPostgres } from './postgres.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.BARTLEBY_TEST_POSTGRES
  if (given) {
    project.provide('postgresUrl', given)
    return async () => {}
  }
  const server = await startPostgres()
  project.provide('postgresUrl', server.url)
  return () => server.stop()
}
