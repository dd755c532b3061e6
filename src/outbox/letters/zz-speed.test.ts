import { describe, expect, it } from 'vitest'
import { OutboxOffice, PLACES } from '../../../test/harness/outbox-office.ts'
describe.each(PLACES)('speed $name', (place) => {
  it('tells 10000', async () => {
    const office = await OutboxOffice.open(place)
    const gen = office.table.dialect === 'postgres' ? 'generate_series(1, 10000) AS n' : '(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM s WHERE n < 10000) SELECT n FROM s)'
    await office.table.query(`INSERT INTO outbox_messages (tenant_id, event_type, payload, dead_at, letter_due, error, retry_count, ordering_key)
      SELECT 'tenant-' || (n % 50), 'order.created', ${office.table.dialect === 'postgres' ? `convert_to(repeat('x', 300), 'UTF8')` : `CAST(hex(randomblob(150)) AS BLOB)`}, ${office.table.dialect === 'postgres' ? 'now()' : '1700000000000000'}, true, 'HttpError: 500 Internal Server Error from http://x/' || n, 6, 'k' || n FROM ${gen}`)
    let t = performance.now()
    expect(await office.clerk.tellNow()).toBe(10000)
    console.log(place.name, 'told', Math.round(performance.now() - t), 'ms')
    office.store.clock.advance(100n * 86_400_000_000n)
    t = performance.now()
    expect(await office.letters.expireOlder({ olderThanDays: 1, engine: 'outbox', actor: 'x' })).toBe(10000)
    console.log(place.name, 'expired', Math.round(performance.now() - t), 'ms')
    t = performance.now()
    expect(await office.clerk.tellNow()).toBe(10000)
    console.log(place.name, 'let go', Math.round(performance.now() - t), 'ms')
    await office.close()
  }, 120_000)
})
