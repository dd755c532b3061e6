/** Runs once per test run: one PostgreSQL for all test files, and the desk where they ask for one Kafka broker. */
import type { TestProject } from 'vitest/node'
import { openKafkaDesk } from '../kafka/desk.ts'
import { startPostgres } from './postgres.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
    kafkaDesk: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const desk = await openKafkaDesk()
  project.provide('kafkaDesk', desk.url)
  const given = process.env.BARTLEBY_TEST_POSTGRES
  if (given) {
    project.provide('postgresUrl', given)
    return () => desk.close()
  }
  const server = await startPostgres()
  project.provide('postgresUrl', server.url)
  return async () => {
    await Promise.all([server.stop(), desk.close()])
  }
}
