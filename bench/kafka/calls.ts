/** Calls of the Kafka API over HTTP, to a server in a process of its own. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Times, timed, timesOf } from '../figures.ts'
import { type BartlebyServer, startBartleby } from '../servers/bartleby.ts'
import { SERVICE } from './events.ts'
import { kafkaOptions, TOKEN } from './options.ts'

export interface Topics {
  readonly bootstrap: string
  readonly dlq: string
  readonly retry: string
  readonly group: string
}

/** Runs `use` with a server on a store; gives what it gives. */
export async function withServer<T>(
  store: string,
  { bootstrap, dlq, retry, group }: Topics,
  use: (server: BartlebyServer) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'bartleby-bench-'))
  const config = join(folder, 'bartleby.json')
  await writeFile(config, JSON.stringify({ kafka: kafkaOptions(bootstrap, dlq, retry, group) }))
  const server = await startBartleby(store, { config })
  try {
    return await use(server)
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

/** How long a hundred next events take to be shown. */
export const timePreviews = async (server: BartlebyServer, samples: number): Promise<Times> =>
  timesOf(await timed(samples, () => call(server, 'GET', `/kafka/${SERVICE}`, 200)))

/** How long it takes to process one event; there must be enough of them. */
export const timeProcessing = async (server: BartlebyServer, samples: number): Promise<Times> =>
  timesOf(await timed(samples, () => call(server, 'POST', `/kafka/${SERVICE}`, 204)))

/** Resolves when so many letters wait. */
export async function untilTakenIn(server: BartlebyServer, letters: number): Promise<void> {
  for (;;) {
    const summary: Record<string, Record<string, number>> = JSON.parse(
      await call(server, 'GET', '/kafka/summary', 200),
    )
    if (summary[SERVICE]?.orders === letters) return
    await pause(50)
  }
}

async function call(
  server: BartlebyServer,
  method: 'GET' | 'POST',
  path: string,
  status: number,
): Promise<string> {
  const answer = await server.fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}` },
    signal: AbortSignal.timeout(60_000),
  })
  const text = await answer.text()
  if (answer.status !== status)
    throw new Error(`${method} ${path} gives ${answer.status}: ${text.slice(0, 200)}`)
  return text
}
