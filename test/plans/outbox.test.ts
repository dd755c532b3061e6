/** What is asked about an outbox follows its indexes, whatever PostgreSQL knows about the table. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Statement } from '../../src/db/database.ts'
import { settingsOf } from '../../src/db/postgres.ts'
import { statementsOf } from '../../src/outbox/list.ts'
import { backlogStatementOf } from '../../src/outbox/look.ts'
import { OUTBOX_STATUSES } from '../../src/outbox/message.ts'
import { PostedOutbox } from '../harness/outbox-post.ts'
import { barePostgres } from '../harness/stores.ts'
import type { PlanNode } from './explain.ts'

const POSTGRES = { name: 'postgres', fresh: barePostgres } as const
const TENANT = 'b06f9f5e-4b0c-4a5f-9d4c-3f8f6a1f0a11'

const nodesOf = (plan: PlanNode): readonly PlanNode[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

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
    await client.query(settingsOf('SESSION'))
  })
  afterAll(async () => {
    await client?.end()
    await outbox?.close()
  })

  const explained = async (text: string) => {
    const { rows } = await client.query(text)
    return rows[0]['QUERY PLAN'][0].Plan as PlanNode
  }
  const planOf = ({ postgres }: Statement) => explained(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${postgres}`)
  const statements = (): readonly Statement[] => [
    backlogStatementOf(outbox.layout),
    ...[null, ...OUTBOX_STATUSES].flatMap((status) =>
      [false, true].flatMap((filtered) => Object.values(statementsOf(outbox.layout, status, filtered))),
    ),
  ]
  const expectIndexes = async () => {
    for (const statement of statements()) {
      const plan = await planOf(statement)
      const nodes = nodesOf(plan)
      const types = nodes.map((node) => node['Node Type'])
      expect(types, `${statement.name}: ${JSON.stringify(plan)}`).not.toContainEqual(
        expect.stringMatching(/Seq Scan|Sort|Bitmap|Hash|Materialize/),
      )
    }
  }
  /** Pages that counting the backlog touches. */
  const pages = async () => {
    const { postgres } = backlogStatementOf(outbox.layout)
    const plan = await explained(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${postgres}`)
    return (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
  }

  it('follow indexes when nothing is known about the table, and when all is', async () => {
    await expectIndexes()
    await client.query(load(outbox, 3_000))
    await expectIndexes()
    await client.query('VACUUM ANALYZE')
    await expectIndexes()
  })

  it('count the backlog without the rows of the table, and at the same cost with many more of them processed', async () => {
    const { layout } = outbox
    const indexOnly = nodesOf(await planOf(backlogStatementOf(layout))).filter(
      (node) => node['Node Type'] === 'Index Only Scan',
    )
    expect(indexOnly.map((node) => node['Index Name'])).toEqual(
      expect.arrayContaining([`${layout.indexPrefix}_due`, `${layout.indexPrefix}_dead`]),
    )
    const before = await pages()
    const c = layout.c
    const at = `timestamptz '2027-02-01' + n * interval '1 second'`
    await client.query(`
      INSERT INTO ${layout.sqlTable} (${c.tenantId}, ${c.eventType}, ${c.payload}, ${c.createdAt}, ${c.processedAt})
      SELECT '${TENANT}', 'type', '{}', ${at}, ${at} FROM generate_series(1, 30000) AS n`)
    await client.query('VACUUM')
    expect(await pages()).toBeLessThanOrEqual(before * 1.5)
  })

  it('walk the messages to be delivered in the order in which they are claimed', () => {
    const { page } = statementsOf(outbox.layout, 'pending', false)
    expect(page.postgres).toContain(`ORDER BY ${outbox.layout.due} ASC`)
  })
})
