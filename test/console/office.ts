/**
 * An office with a console, for tests in the browser: a real server on a real store, with an engine whose worker fails at
 * first and works once it is told so, and letters that others reported.
 */
import { hash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { LetterClient, QueueClient, RedriveClient } from '../../src/client/index.ts'
import { type ServerHere, startServer } from '../world/server.ts'
import { freshSqlite } from '../world/stores.ts'

/** Roles and their tokens, in a server with tokens. */
export const TOKENS = { viewer: 'viewer-token', operator: 'operator-token', admin: 'admin-token' } as const

export interface ConsoleOffice extends ServerHere {
  readonly letters: LetterClient
  readonly queues: QueueClient
  readonly redrives: RedriveClient
  /** From now on the worker does its work. */
  mend(): void
  /** From now on it fails, as it does at first. */
  fail(): void
  close(): Promise<void>
}

/** Opens it; `withTokens` asks everybody for one. */
export async function openConsoleOffice({ withTokens = false } = {}): Promise<ConsoleOffice> {
  const store = await freshSqlite()
  const folder = await mkdtemp(join(tmpdir(), 'bartleby-console-'))
  const config = join(folder, 'bartleby.yaml')
  await writeFile(config, JSON.stringify(configurationWith(withTokens)))
  const server = await startServer({ store: store.url, config, testApi: false })
  const token = withTokens ? { token: TOKENS.admin } : {}
  const queues = new QueueClient({ url: server.url, ...token })
  const letters = new LetterClient({ url: server.url, ...token })
  const redrives = new RedriveClient({ url: server.url, ...token })
  let isMended = false
  const worker = server.office.engine({
    name: 'hmac',
    operation: 'rotate',
    instanceId: ({ instanceId }) => instanceId,
    maxAttempts: 1,
    handler: async () => {
      if (!isMended) throw new TimeoutError('connect ETIMEDOUT 10.0.3.7:443 to the key vault')
      return { rotated: true }
    },
  })
  await worker.start()
  return {
    ...server,
    letters,
    queues,
    redrives,
    mend: () => {
      isMended = true
    },
    fail: () => {
      isMended = false
    },
    close: async () => {
      await server.stop()
      await store.dispose()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

class TimeoutError extends Error {
  override readonly name = 'TimeoutError'
}

function configurationWith(tokens: boolean): object {
  const engines = { context: 'publisher' }
  if (!tokens) return { engines, console: { environment: 'staging', colour: 'green' } }
  const entries = Object.entries(TOKENS).map(([role, token]) => ({
    name: `${role}-person`,
    role,
    sha256: hash('sha256', token),
  }))
  return { engines, auth: { tokens: entries }, console: { environment: 'production', colour: 'red' } }
}

/** Puts messages into the queue of the failing worker; resolves when they are letters. */
export async function deadRotations(office: ConsoleOffice, count: number): Promise<void> {
  const before = (await office.letters.counts({ engine: 'hmac', status: 'Pending' })).totals.Pending
  await office.queues.produce({
    queueName: 'hmac-rotation-queue',
    items: Array.from({ length: count }, (_, number) => ({
      // A number that JavaScript would round: what is shown must be exact.
      payload: `{"instanceId": "instance-${number}", "serial": 9007199254740993}`,
    })),
  })
  await expect
    .poll(async () => (await office.letters.counts({ engine: 'hmac', status: 'Pending' })).totals.Pending)
    .toBe(before + count)
}

/** Discards the letters of the worker that are left, so that the next ones are all there are. */
export async function clearRotations(office: ConsoleOffice): Promise<void> {
  for await (const letter of office.letters.walk({ engine: 'hmac', status: 'Pending' }))
    await office.letters.discard(letter, 'left over')
}

const REPORTED = [
  ['TypeError', "Cannot read properties of undefined (reading 'total')"],
  ['SchemaError', '/items/0/price must be number'],
] as const

/** Puts failures of another system on file, as `POST /api/dlq` does: two groups of them. */
export async function reportedFailures(office: ConsoleOffice, count: number): Promise<void> {
  for (let number = 0; number < count; number++) {
    const [errorClass, errorMessage] = REPORTED[number % REPORTED.length] ?? REPORTED[0]
    await office.letters.capture({
      engine: 'http',
      sourceId: `reported-${number}`,
      instanceId: `customer-${number % 3}`,
      originalMessage: JSON.stringify({ order: number, city: 'Köln' }),
      errorClass,
      errorMessage,
      dequeueCount: 1 + (number % 4),
    })
  }
}
