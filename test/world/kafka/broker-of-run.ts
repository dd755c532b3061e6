/**
 * Kafka for tests: a real broker, one for the whole test run, started when the first test file asks. `KAFKA_BOOTSTRAP` names another
 * one to use. Where none can be started the tests are skipped; a build (`CI=true`) fails instead.
 */
import { beforeAll, describe, inject, it } from 'vitest'
import type { Ability } from './broker-desk.ts'
import { type Topics, topicsAt } from './topics.ts'

const given = process.env.KAFKA_BOOTSTRAP
const START_TIMEOUT_MS = 60_000

const ask = async <T>(what: string): Promise<T> => {
  const answer = await fetch(`${inject('kafkaDesk')}/${what}`)
  if (!answer.ok) throw new Error(await answer.text())
  // From the desk of the run.
  return (await answer.json()) as T
}

const ability = await ask<Ability>('ability')
const why = ability.able ? '' : ability.why

/** Tests on the broker of the run. */
export function describeKafka(name: string, body: () => void): void {
  describeWhere(given !== undefined || ability.able, name, () => {
    beforeAll(async () => {
      await kafkaBroker()
    }, START_TIMEOUT_MS)
    body()
  })
}

/** Tests that start brokers of their own, with `startBroker` or `startSecureBroker`. */
export function describeOwnBroker(name: string, body: () => void): void {
  describeWhere(ability.able, name, body)
}

function describeWhere(isAble: boolean, name: string, body: () => void): void {
  if (isAble) {
    describe(name, body)
  } else if (process.env.CI === 'true') {
    it(name, () => {
      throw new Error(why)
    })
  } else {
    describe.skip(name, body)
  }
}

/** The broker of the run, and what can be done with it. */
export async function kafkaBroker(): Promise<Topics> {
  const { bootstrap } =
    given === undefined ? await ask<{ bootstrap: string }>('broker') : { bootstrap: given }
  return topicsAt(bootstrap)
}
