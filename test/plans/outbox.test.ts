/** What is asked about an outbox costs what it tells, whatever was processed before. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { backlogStatementOf } from '../../src/sources/outbox/served/health.ts'
import { statementsOf } from '../../src/sources/outbox/served/list.ts'
import { PostedOutbox } from '../world/outbox-post.ts'
import { barePostgres } from '../world/stores.ts'
import { type PlanNode, pagesTouched } from './explain.ts'

const POSTGRES = { name: 'postgres', fresh: barePostgres } as const
const TENANT = 'b06f9f5e-4b0c-4a5f-9d4c-3f8f6a1f0a11'

/** Rows of every state; of these only the processed ones grow in number. */
const load = ({ layout }: PostedOutbox, processed: number) => {
  const c = layout.c
  const at = `timestamptz '2027-01-01' + n * interval '1 second'`
  return `
    INSERT INTO ${layout.sqlTable} (${c.tenantId}, ${c.eventType}, ${c.payload}, ${c.createdAt}, ${c.retryCount}, ${c.processedAt}, ${c.deadAt}, ${c.nextAttemptAt})
    SELECT '${TENANT}', 'type-' || n % 7, '{}', ${at}, n % 3, CASE WHEN n <= ${processed} THEN ${at} END,
      CASE WHEN n > ${processed + 300} THEN ${at} END, CASE WHEN n % 3 > 0 THEN ${at} END
    FROM generate_series(1, ${processed + 400}) AS n`
}

describe.each([
  { of: 'us', open: () => PostedOutbox.open(POSTGRES) },
  { of: 'others', open: () => PostedOutbox.openAdopted(POSTGRES) },
])('questions about an outbox in a table of $of', ({ open }) => {
  let outbox: PostedOutbox
  let client: pg.Client

  beforeAll(async () => {
    outbox = await open()
    client = new pg.Client({ connectionString: outbox.url })
    await client.connect()
    await client.query(`ALTER TABLE ${outbox.layout.sqlTable} SET (autovacuum_enabled = off)`)
  })
  afterAll(async () => {
    await client?.end()
    await outbox?.close()
  })

  const explained = async (text: string) => {
    const { rows } = await client.query(text)
    return rows[0]['QUERY PLAN'][0].Plan as PlanNode
  }
  /** Pages that counting the backlog touches. */
  const pages = async () => {
    const { postgres } = backlogStatementOf(outbox.layout)
    const plan = await explained(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${postgres}`)
    return pagesTouched(plan)
  }

  it('count the backlog at the same cost with many more messages processed', async () => {
    const { layout } = outbox
    await client.query(load(outbox, 3_000))
    await client.query('VACUUM ANALYZE')
    const before = await pages()
    const c = layout.c
    const at = `timestamptz '2027-02-01' + n * interval '1 second'`
    await client.query(`
      INSERT INTO ${layout.sqlTable} (${c.tenantId}, ${c.eventType}, ${c.payload}, ${c.createdAt}, ${c.processedAt})
      SELECT '${TENANT}', 'type', '{}', ${at}, ${at} FROM generate_series(1, 60000) AS n`)
    await client.query('VACUUM')
    expect(await pages()).toBeLessThanOrEqual(before * 1.5)
  })

  it('walk the messages to be delivered in the order in which they are claimed', () => {
    const { page } = statementsOf(outbox.layout, 'pending', false)
    expect(page.postgres).toContain(`ORDER BY ${outbox.layout.due} ASC`)
  })
})
