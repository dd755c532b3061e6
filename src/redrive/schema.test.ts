import { describe, expect, it } from 'vitest'
import { bareStores } from '../../test/world/stores.ts'
import { instant } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { Xids } from '../core/xid.ts'
import { MIGRATIONS } from '../migrations.ts'
import { Office } from '../office.ts'
import { sql } from '../store/database.ts'
import { migrate } from '../store/migrations.ts'
import { openDatabase } from '../store/open.ts'
import { verifyStore } from '../verify/verify.ts'

const NOW = 1_800_000_000_000_000n
const TERMS = '{"rate":5,"canary":null,"stopRule":null,"order":"key"}'
const NUMBERS =
  '{"matched":0,"eligible":0,"inFlight":0,"noDestination":0,"orderBlocked":0,"duplicate":0,"invalid":0}'

/** A redrive as version 14 has them: $2 is its state, $3 what it resumes as, $4 when it ended, $5 who is at it. */
const OLD_REDRIVE = sql(
  'test.oldRedrive',
  `INSERT INTO bartleby.redrives (id, state, resumes_as, action, selection, numbers, terms, planned_by, planned_at, valid_until, started_by,
     started_at, ended_at, note, resumed, owner, owned_until)
   VALUES ($1, $2, $3, 'retry', '{"by":"filter","filter":{}}', '${NUMBERS}', '${TERMS}', 'nell', ${NOW}, ${NOW}, 'bob', ${NOW}, $4, 'lunch', 2, $5,
     ${NOW})`,
)

describe.each(bareStores)('redrives of a store of version 14 on $name', (kind) => {
  it('go on as runs: those under way are taken up, those that are paused stay so', async () => {
    const place = await kind.fresh()
    const clock = new TestClock()
    clock.freeze(instant(NOW + 60_000_000n))
    const xids = new Xids(clock)
    const [running, paused, done, half] = [xids.next(), xids.next(), xids.next(), xids.next()]
    try {
      const db = openDatabase(place.url, { poolSize: 2 })
      await migrate(
        db,
        MIGRATIONS.filter(({ number }) => number <= 14),
      )
      await db.transaction('test', async (tx) => {
        await tx.run(OLD_REDRIVE, running, 'running', null, null, 'a server that is gone')
        await tx.run(OLD_REDRIVE, paused, 'paused', 'canary', null, null)
        await tx.run(OLD_REDRIVE, done, 'done', null, NOW, null)
        await tx.run(OLD_REDRIVE, half, 'planning', null, null, null)
      })
      await db.close()

      const office = await Office.open({ store: place.url, clock })
      try {
        const { redrives, runs } = office
        await redrives.settle()
        expect(await redrives.read(running)).toMatchObject({ state: 'done', resumed: 3, isHeld: false })
        expect(await redrives.read(done)).toMatchObject({ state: 'done', resumed: 2, startedBy: 'bob' })
        await expect(redrives.read(half)).rejects.toMatchObject({ code: 'redrive_unknown' })
        expect(await redrives.read(paused)).toMatchObject({ state: 'paused', note: 'lunch', isHeld: false })
        expect(await runs.open()).toMatchObject([{ id: paused, kind: 'redrive', state: 'paused', rate: 5 }])
        await redrives.resume(paused, 'nell')
        await redrives.settle()
        expect(await redrives.read(paused)).toMatchObject({ state: 'canary', isHeld: true })
        await redrives.cancel(paused, 'nell', null)
        expect((await runs.read(paused))?.state).toBe('cancelled')
      } finally {
        await office.close()
      }
      const after = openDatabase(place.url, { poolSize: 2 })
      const { invariants } = await verifyStore(after, { clock })
      await after.close()
      expect(invariants.flatMap(({ violations }) => violations)).toEqual([])
    } finally {
      await place.dispose()
    }
  })
})
