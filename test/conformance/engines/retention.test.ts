/** Contract 5: what is past its time is removed, counted in metrics, and told in one row of history. */
import { expect, it } from 'vitest'
import { hours, minutes } from '../../world/time.ts'
import { captureBody, type Entry, offices, only, pathTo, until } from './bed.ts'

const days = (n: number): bigint => hours(24 * n)

offices(
  'retention',
  (desk) => {
    it('removes what is resolved or expired, never what is pending, and says so in one row', async () => {
      const [kept, discarded, expired] = [
        await desk.capture({ engine: 'hmac' }),
        await desk.capture({ engine: 'hmac' }),
        await desk.capture({ engine: 'tls' }),
      ]
      await desk.patch(discarded, 'Resolved', 'not needed')
      await desk.patch(expired, 'Expired')
      await desk.clock.advance(days(7) + minutes(1))

      await until(async () => {
        // Last of all, the run is told to the metrics.
        const { bytes } = await desk.wire.raw('/metrics', { method: 'GET' })
        const text = Buffer.from(bytes).toString()
        expect(text).toMatch(/^bartleby_retention_removed_letters_total 2$/m)
        expect(text).toMatch(/^bartleby_retention_removed_history_total 5$/m)
      })
      expect((await desk.letter(kept)).status).toBe('Pending')
      await desk.refuses('GET', pathTo(discarded), {}, 404)
      await desk.refuses('GET', pathTo(expired), {}, 404)
      const { engine, rowKey, ...entry } = only((await desk.history()).items)
      expect(entry).toMatchObject({ operation: 'remove', status: 'Succeeded' })
      const { output } = await desk.ok<Entry>('GET', `/api/history/${engine}/${rowKey}`)
      expect([engine, output]).toEqual(['office', '{"letters":{"tls":1,"hmac":1},"history":5}'])
      expect((await desk.history({ engine: 'office', operation: 'remove' })).items).toHaveLength(1)
    })

    it('speaks for the office, and nobody else does', async () => {
      await desk.refuses('POST', '/api/dlq', { body: captureBody({ engine: 'office' }) }, 400, 'office')
      const body = { engine: 'office', operation: 'remove', status: 'Succeeded', durationMs: 0 }
      await desk.refuses('POST', '/api/history', { body }, 400, 'remove')
      expect((await desk.list({ engine: 'office' })).items).toEqual([])
    })
  },
  { settings: { engines: { tables: { retentionDays: 7 } } } },
)
