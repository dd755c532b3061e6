import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TOKEN, TOKEN_HASH } from '../../../test/world/kafka/http.ts'
import { record } from '../../../test/world/kafka/records.ts'
import { type ServerHere, startServer } from '../../../test/world/server.ts'
import { type FreshStore, freshSqlite } from '../../../test/world/stores.ts'
import { bartleby } from '../../../test/world/terminal-double.ts'
import { SystemClock } from '../../core/system-clock.ts'
import { newRegisters } from '../../letters/registers.ts'
import { migrateStore } from '../../office.ts'
import { readRedriveRef } from '../../redrive/rows/rows.ts'
import { openDatabase } from '../../store/open.ts'
import { createRecordStore } from './intake/store.ts'
import { kafkaSettings } from './settings/options.ts'

/** Nobody listens there: the server is to start all the same, and the commands to say so. */
const KAFKA = {
  enabled: true,
  servers: ['127.0.0.1:1'],
  token_hashes: [TOKEN_HASH],
  services: {
    wps: ['wps_dlq', 'wps_retry'] as [string, string],
    ucs: ['ucs_dlq', 'ucs_retry'] as [string, string],
  },
}
const UNASSIGNED = '4706cc1b-4c32-46d9-91b9-57b2de45dfe0'

describe('bartleby kafka', () => {
  let place: FreshStore
  let folder: string
  let server: ServerHere

  beforeAll(async () => {
    place = await freshSqlite()
    await migrateStore(place.url)
    await takeIn(place.url)
    folder = await mkdtemp(join(tmpdir(), 'bartleby-kafka-'))
    const config = join(folder, 'bartleby.json')
    await writeFile(config, JSON.stringify({ kafka: KAFKA }))
    server = await startServer({ store: place.url, config })
  })
  afterAll(async () => {
    await server?.stop()
    await place?.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  const kafka = (args: string, token: object = { BARTLEBY_TOKEN: TOKEN }) =>
    bartleby(['kafka', ...args.split(' ')], { env: { BARTLEBY_URL: server.url, ...token } })

  it('shows what waits and how intake stands, also while no broker answers', async () => {
    const { code, out } = await kafka('status')
    expect(code).toBe(0)
    expect(out).toMatch(
      /^SERVICE +PENDING +DLQ TOPIC +RETRY TOPIC +PROFILE\nwps +1 +wps_dlq +wps_retry +hexkit\n/,
    )
    expect(out).toMatch(/\n~unknown +1 +- +- +-\n/)
    await expect.poll(async () => (await kafka('status')).out).toMatch(/intake: degraded\n +\S/)
    expect(JSON.parse((await kafka('status --json')).out)).toMatchObject({ enabled: true, intake: {} })
  })

  it('shows an event, and gives it to a service', async () => {
    expect(JSON.parse((await kafka(`show ${UNASSIGNED}`)).out)).toMatchObject({ service: '~unknown' })
    const withoutToken = await kafka(`reassign ${UNASSIGNED} wps --topic orders`, {})
    expect(withoutToken.code).not.toBe(0)
    expect(withoutToken.err).toMatch(/token/)
    expect(await kafka(`reassign ${UNASSIGNED} wps --topic orders`)).toMatchObject({
      code: 0,
      out: `event '${UNASSIGNED}' is in the queue of 'wps', from topic 'orders'`,
    })
    expect(JSON.parse((await kafka(`show ${UNASSIGNED}`)).out)).toMatchObject({ service: 'wps' })
  })

  it('says what it cannot do', async () => {
    const { code, err } = await kafka('show 00000000-0000-4000-8000-000000000000')
    expect(code).not.toBe(0)
    expect(err).toContain('letter does not exist')
    expect((await kafka(`reassign ${UNASSIGNED} nobody`)).code).not.toBe(0)
  })
})

async function takeIn(url: string): Promise<void> {
  const db = openDatabase(url, { poolSize: 1 })
  const settings = kafkaSettings(KAFKA)
  if (settings === null) throw new Error('Kafka is not enabled')
  const registers = newRegisters()
  const store = createRecordStore({
    ...{ db, clock: new SystemClock(), registers, settings },
    redriveOf: readRedriveRef,
  })
  const records = [
    record({ offset: 0, service: 'wps' }),
    record({ offset: 1, service: 'stranger', eventId: UNASSIGNED }),
  ]
  await store.prepare(records)()
  await db.close()
}
