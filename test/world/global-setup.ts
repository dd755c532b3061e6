/** Runs once per test run: one PostgreSQL for all test files, and the desk where they ask for one Kafka broker. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { migrateStore } from '../../src/office.ts'
import { openKafkaDesk } from './kafka/broker-desk.ts'
import { createDatabase, startPostgres } from './postgres.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
    /** The name of a database with our tables in it, which others are copied from. */
    postgresTemplate: string
    /** The path of an SQLite file with them. */
    sqliteTemplate: string
    kafkaDesk: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const desk = await openKafkaDesk()
  project.provide('kafkaDesk', desk.url)
  const given = process.env.BARTLEBY_TEST_POSTGRES
  const server = given ? { url: given, stop: async () => {} } : await startPostgres()
  project.provide('postgresUrl', server.url)
  const template = await createDatabase(server.url)
  await migrateStore(template.url)
  project.provide('postgresTemplate', template.name)
  const folder = await mkdtemp(join(tmpdir(), 'bartleby-template-'))
  const file = join(folder, 'store.db')
  await migrateStore(`sqlite:${file}`)
  project.provide('sqliteTemplate', file)
  return async () => {
    await template.drop()
    await Promise.all([server.stop(), desk.close(), rm(folder, { recursive: true, force: true })])
  }
}
