/**
 * Where test files ask for the broker of the test run. It lives in the one process that outlives all test files, so there is one
 * broker for all of them, started by the first that asks and ended with the run.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type KafkaBroker, startBroker } from './broker.ts'
import { brokerClassPath } from './jars.ts'

/** Whether brokers can be started here, and if not, why. */
export type Ability = { readonly able: true } | { readonly able: false; readonly why: string }

export interface KafkaDesk {
  readonly url: string
  close(): Promise<void>
}

/** Opens the desk; nothing is started before somebody asks. */
export async function openKafkaDesk(): Promise<KafkaDesk> {
  let ability: Promise<Ability> | undefined
  let broker: Promise<KafkaBroker> | undefined
  const answers: Readonly<Record<string, () => Promise<unknown>>> = {
    '/ability': () => {
      ability ??= findAbility()
      return ability
    },
    '/broker': async () => {
      broker ??= startBroker()
      return { bootstrap: (await broker).bootstrap }
    },
  }
  const server = createServer((request, response) => {
    const answer = answers[request.url ?? ''] ?? (async () => null)
    answer().then(
      (value) => response.end(JSON.stringify(value)),
      (error) => response.writeHead(500).end(String(error)),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return {
    url: `http://127.0.0.1:${address.port}`,
    async close() {
      server.close()
      server.closeAllConnections()
      await broker?.then(
        (started) => started.dispose(),
        () => {},
      )
    },
  }
}

async function findAbility(): Promise<Ability> {
  try {
    await brokerClassPath()
    return { able: true }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    console.warn(`Tests on Kafka ${process.env.CI === 'true' ? 'fail' : 'are skipped'}: ${why}.`)
    return { able: false, why }
  }
}
