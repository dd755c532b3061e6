import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noting } from '../../../../test/world/counted-statements.ts'
import { stores } from '../../../../test/world/stores.ts'
import { claimOf, WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { BartlebyError } from '../../../core/errors.ts'
import type { Xid } from '../../../core/xid.ts'
import { allocateLetterIds } from '../../../letters/capture.ts'
import { change as changeLetters, NOBODY } from '../../../letters/change.ts'
import { fileCaseFailures } from '../../../letters/confirm.ts'
import { type Letter, type LetterId, type LetterStatus, letterId } from '../../../letters/letter.ts'
import { type BulkLetter, lockBulkLetters } from '../../../letters/lists/bulk-letters.ts'
import { NO_EDITS, type Refused, type Restoring, restoreLetters, sendBack } from '../../../letters/source.ts'
import { inOffice, type OfficeWork } from '../../../letters/work.ts'
import { sql } from '../../../store/database.ts'
import { JOB } from '../webhook.ts'
import { webhookLetterSource } from './source.ts'

const nameCase = sql('test.nameCase', 'UPDATE bartleby.webhook_jobs SET letter = $2 WHERE id = $1')

/** The code of the error that a call fails with. */
async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'done'
  } catch (error) {
    if (error instanceof BartlebyError) return error.code
    throw error
  }
}

describe.each(stores)('letters of webhook jobs on $name', (kind) => {
  let office: WebhookWorld
  beforeAll(async () => {
    office = await WebhookWorld.open(kind)
  })
  afterAll(() => office?.close())

  const keyOf = ({ engine, rowKey }: Letter) => ({ engine, rowKey })
  const retry = async (job: Xid, payload: Uint8Array | null = null) =>
    office.letters.retry(keyOf(await office.letter(job)), {
      edit: payload === null ? null : { payload },
      notes: null,
      actor: 'operator',
    })
  const change = (letter: Letter, status: LetterStatus) =>
    office.letters.change(keyOf(letter), { status, notes: 'for the test', actor: 'operator' })

  describe('a job that dies', () => {
    it('becomes a letter with what its message carries, and keeps its number', async () => {
      const consumer = await office.consumer(await office.channel('orders/é'))
      const job = await office.one(consumer)
      await office.die([job])
      const letter = await office.letter(job)
      const text = (bytes: Uint8Array | null) => Buffer.from(bytes ?? []).toString()
      expect([text(letter.headers), text(letter.payload)]).toEqual(['[["X-Foo","bar"]]', '{"number":1}'])
      expect(letter).toMatchObject({
        source: 'webhooks',
        engine: 'webhooks',
        sourceId: job,
        originalQueue: `orders%2Fé/${consumer.consumerId}`,
        correlationId: 'm1',
        status: 'Pending',
        reason: 'attempts',
        errorClass: 'HttpError',
        errorMessage: 'its consumer answered 500',
        failedBy: 'courier',
        dequeueCount: 6,
        encoding: 'application/json',
        kind: 'orders/é',
        reference: 'm1',
      })
      expect(await office.job(job)).toMatchObject({
        state: JOB.dead,
        exhausted: true,
        attempts: 5,
        claim: null,
        dueAt: null,
      })
      expect(await office.deadCount(consumer)).toBe(1)
      expect(await office.counted(consumer)).toEqual({})
      await office.expectVerified()
    })

    it('is filed with the failures before its last', async () => {
      const consumer = await office.consumer(await office.channel())
      const [job, other] = [await office.one(consumer), await office.one(consumer)]
      const firstAt = office.clock.now()
      const caseId = await inOffice(office.db, office.clock, 'test.fail', async (work) => {
        const [id = letterId(0)] = await allocateLetterIds(work.tx, 1)
        const failure = {
          failedBy: 'courier',
          errorClass: 'Timeout',
          errorMessage: 'too late',
          errorStack: null,
        }
        await fileCaseFailures(work, [{ caseId: id, correlationId: 'm1', ...failure }])
        await work.tx.run(nameCase, job, id)
        return id
      })
      office.pass(60)
      await office.die([job, other])
      const letter = await office.letter(job)
      expect(letter).toMatchObject({
        id: caseId,
        firstFailureAt: firstAt,
        lastFailureAt: firstAt + 60_000_000n,
      })
      const { failures } = await office.letters.get(keyOf(letter))
      expect(failures.map(({ errorClass }) => errorClass)).toEqual(['Timeout', 'HttpError'])
      expect((await office.letter(other)).firstFailureAt).toBe(firstAt + 60_000_000n)
      await office.expectVerified()
    })

    it('does not die under a claim that it is no longer under', async () => {
      const consumer = await office.consumer(await office.channel())
      const jobs = (await office.send([consumer], 3)).flat()
      const [inFlight, ready, delivered] = jobs as [Xid, Xid, Xid]
      await office.take([inFlight, delivered])
      await office.move([delivered], JOB.delivered)
      expect(await office.bury([inFlight], { claim: 'an old one' })).toEqual(new Set())
      expect(await office.bury([inFlight, ready, delivered])).toEqual(new Set([inFlight]))
      // A second time, by who did not hear of the first.
      expect(await office.bury([inFlight])).toEqual(new Set())
      expect(await office.deadCount(consumer)).toBe(1)
      expect(await office.counted(consumer)).toEqual({ queued: 1, delivered: 1 })
      await office.expectVerified()
    })

    it('reopens its letter when it dies again, and is counted once', async () => {
      const consumer = await office.consumer(await office.channel())
      const [again, first] = [await office.one(consumer), await office.one(consumer)]
      await office.die([again])
      const { id } = await office.letter(again)
      await retry(again)
      expect(await office.deadCount(consumer)).toBe(0)
      office.pass(60)
      await office.die([again, first])
      expect(await office.letter(again)).toMatchObject({
        id,
        status: 'Pending',
        dequeueCount: 12,
        version: 3,
      })
      expect(await office.deadCount(consumer)).toBe(2)
      const { history } = await office.letters.get(keyOf(await office.letter(again)))
      expect(history.map(({ operation }) => operation)).toEqual(['reopen', 'retry', 'capture'])
      await office.expectVerified()
    })

    it('dies with many others, of several consumers, in one transaction', async () => {
      const channel = await office.channel()
      const consumers = [await office.consumer(channel), await office.consumer(channel, { type: 'pull' })]
      const jobs = (await office.send(consumers, 40)).flat()
      await office.die(jobs)
      for (const consumer of consumers) expect(await office.deadCount(consumer)).toBe(40)
      await office.expectVerified()
    })

    it('leaves nothing behind when its death is rolled back', async () => {
      const consumer = await office.consumer(await office.channel())
      const job = await office.one(consumer)
      await office.take([job])
      await office.place.refuseWrites()
      await expect(office.bury([job])).rejects.toThrow()
      await office.place.acceptWrites()
      expect(await office.job(job)).toMatchObject({ state: JOB.inFlight, claim: claimOf(job) })
      expect(await office.deadCount(consumer)).toBe(0)
      await office.expectVerified()
    })
  })

  describe('an operator', () => {
    it('retries a letter: its job starts a full new round, and its consumer is woken', async () => {
      const consumer = await office.consumer(await office.channel())
      const job = await office.one(consumer)
      await office.die([job])
      expect(await retry(job)).toEqual({ messageId: job, queue: (await office.letter(job)).originalQueue })
      expect(await office.job(job)).toMatchObject({
        state: JOB.ready,
        attempts: 0,
        exhausted: false,
        dueAt: null,
      })
      expect(office.woken).toContain(consumer.number)
      expect(await office.counted(consumer)).toEqual({ queued: 1 })
      await office.take([job], 0)
      await office.move([job], JOB.delivered)
      expect((await office.letter(job)).confirmedAt).not.toBeNull()
      await office.expectVerified()
    })

    it('wakes nobody for a consumer that pulls', async () => {
      const consumer = await office.consumer(await office.channel(), { type: 'pull' })
      const [job] = (await office.deadJobs(consumer, 1)) as [Xid]
      await retry(job)
      expect(office.woken).not.toContain(consumer.number)
    })

    it('cannot edit what was broadcast to all', async () => {
      const [job] = (await office.deadJobs(await office.consumer(await office.channel()), 1)) as [Xid]
      expect(await codeOf(retry(job, Buffer.from('{"number":0}')))).toBe('parameter_invalid')
      expect(await codeOf(retry(job, (await office.letter(job)).payload))).toBe('done')
    })

    it('discards a letter: its job is gone until it is restored', async () => {
      const consumer = await office.consumer(await office.channel())
      const [job, rejected] = (await office.send([consumer], 2)).flat() as [Xid, Xid]
      await office.die([job])
      await office.take([rejected], 2)
      await office.bury([rejected], { reason: 'rejected', exhausted: false })
      const before = await office.job(job)
      for (const [id, exhausted] of [
        [job, true],
        [rejected, false],
      ] as const) {
        const letter = await office.letter(id)
        await change(letter, 'Resolved')
        expect(await office.job(id)).toBeNull()
        await change(letter, 'Pending')
        expect(await office.job(id)).toMatchObject({ state: JOB.dead, letter: letter.id, exhausted })
      }
      expect(await office.job(job)).toEqual(before)
      expect(await office.deadCount(consumer)).toBe(2)
      await retry(job)
      await office.expectVerified()
    })

    it('takes a retry back while the job waits, and not while it is in flight', async () => {
      const consumer = await office.consumer(await office.channel())
      const job = await office.one(consumer)
      await office.die([job])
      const letter = await office.letter(job)
      await retry(job)
      await office.take([job], 2)
      expect(await codeOf(change(letter, 'Pending'))).toBe('letter_in_flight')
      await office.move([job], JOB.later)
      await change(letter, 'Pending')
      expect(await office.job(job)).toMatchObject({ state: JOB.dead, exhausted: true, dueAt: null })
      expect(await office.letter(job)).toMatchObject({ status: 'Pending', dequeueCount: 8 })
      expect(await office.counted(consumer)).toEqual({})
      await office.expectVerified()
    })

    it('restores a letter whose job was delivered since', async () => {
      const consumer = await office.consumer(await office.channel())
      const job = await office.one(consumer)
      await office.die([job])
      const letter = await office.letter(job)
      await retry(job)
      await office.take([job], 0)
      await office.move([job], JOB.delivered)
      await change(letter, 'Pending')
      expect(await office.job(job)).toMatchObject({ state: JOB.dead, letter: letter.id })
      expect(await office.deadCount(consumer)).toBe(1)
      await office.expectVerified()
    })

    it('is told when there is nothing to go back to', async () => {
      const channel = await office.channel()
      const [consumer, leaving] = [await office.consumer(channel), await office.consumer(channel)]
      const [job, lonely] = (await office.send([consumer, leaving])).flat() as [Xid, Xid]
      await office.die([job, lonely])
      const [letter, orphan] = [await office.letter(job), await office.letter(lonely)]
      await change(orphan, 'Resolved')
      const since = new Date(Number(leaving.updatedAt / 1000n)).toUTCString()
      await office.consumers.delete(channel, leaving.consumerId, since)
      expect(await codeOf(change(orphan, 'Pending'))).toBe('letter_consumer_gone')
      await change(letter, 'Resolved')
      await office.forgetMessage(letter.reference, consumer.channel)
      expect(await codeOf(change(letter, 'Pending'))).toBe('letter_message_gone')
      expect(await office.deadCount(consumer)).toBe(0)
      await office.expectVerified()
    })

    it('lets letters expire with their jobs, many at once', async () => {
      const consumer = await office.consumer(await office.channel())
      const jobs = await office.deadJobs(consumer, 3)
      office.pass(3 * 86_400)
      const request = { olderThanDays: 1, engine: 'webhooks', actor: 'operator' }
      expect(await office.letters.expireOlder(request)).toBeGreaterThanOrEqual(3)
      for (const job of jobs) expect(await office.job(job)).toBeNull()
      expect(await office.deadCount(consumer)).toBe(0)
      await office.expectVerified()
    })
  })

  describe('many letters that are restored', () => {
    const source = webhookLetterSource({ onJobs: () => {} })
    const acting = { actor: 'operator', notes: null }
    const lettersOf = async (jobs: readonly Xid[]): Promise<LetterId[]> =>
      (await Promise.all(jobs.map((job) => office.letter(job)))).map(({ id }) => id)
    type Locked = BulkLetter & { readonly originalQueue: string }
    const inOneAct =
      (act: (work: OfficeWork, letters: readonly Locked[]) => Promise<unknown>) =>
      (ids: readonly LetterId[]): Promise<unknown> => {
        office.pass(1)
        return inOffice(office.db, office.clock, 'test', async (work) => {
          const locked = [...(await lockBulkLetters(work.tx, ids)).values()]
          return act(
            work,
            locked.map((letter) => ({ ...letter, originalQueue: 'as it was' })),
          )
        })
      }
    const retryAll = inOneAct((work, letters) => sendBack(work, source, letters, NO_EDITS, acting))
    const discardAll = inOneAct(async (work, letters) => {
      await source.moved(work, letters, 'discard')
      const discarded = letters.map(({ id, engine }) => ({ id, engine }))
      await changeLetters(work, 'discard', discarded, { ...NOBODY, ...acting })
    })
    const restoreAll = async (ids: readonly LetterId[], asked: string[] = []) => {
      let refused: readonly Refused[] = []
      await inOneAct(async (work, letters) => {
        const restoring = letters.map((letter) => ({ ...letter, before: letter }))
        // What the letters themselves cost is told by the test of their acts.
        const counted = { ...source, takeBack: takeBackNoted }
        refused = await restoreLetters(work, counted, restoring, acting)
      })(ids)
      return new Map(refused.map(({ letter, refusal }) => [letter.id, refusal.code]))

      function takeBackNoted<Of extends Restoring>(work: OfficeWork, letters: readonly Of[]) {
        return source.takeBack(noting(work, asked), letters)
      }
    }

    it('take as many statements as one, whatever became of their jobs', async () => {
      for (const leave of [retryAll, discardAll]) {
        const statements: string[][] = []
        for (const count of [1, 10, 500]) {
          const channels = await Promise.all(
            Array.from({ length: Math.min(count, 5) }, () => office.channel()),
          )
          const jobs: Xid[] = []
          for (const channel of channels)
            jobs.push(...(await office.deadJobs(await office.consumer(channel), count / channels.length)))
          const ids = await lettersOf(jobs)
          await leave(ids)
          const asked: string[] = []
          expect(await restoreAll(ids, asked)).toEqual(new Map())
          // Changed counts are added one by one where they are few: these are as many as there are consumers.
          statements.push(asked.filter((name) => !name.startsWith('webhooks.add')))
          for (const job of [jobs.at(0), jobs.at(-1)])
            expect(job && (await office.job(job))).toMatchObject({ state: JOB.dead, exhausted: true })
        }
        const [one] = statements
        expect(statements).toEqual([one, one, one])
        expect(one?.length).toBeLessThanOrEqual(8)
      }
      await office.expectVerified()
    })

    it('become what each would become alone', async () => {
      const channel = await office.channel()
      const [consumer, leaving] = [await office.consumer(channel), await office.consumer(channel)]
      const [waiting, running, delivered, gone, forgotten] = (await office.deadJobs(consumer, 5)) as [
        Xid,
        Xid,
        Xid,
        Xid,
        Xid,
      ]
      const [orphan] = (await office.deadJobs(leaving, 1)) as [Xid]
      const jobs = [waiting, running, delivered, gone, forgotten, orphan]
      const ids = await lettersOf(jobs)
      const { reference } = await office.letter(forgotten)
      await retryAll(ids.slice(0, 3))
      await discardAll(ids.slice(3))
      await office.take([running, delivered], 0)
      await office.move([delivered], JOB.delivered)
      await office.forgetMessage(reference, consumer.channel)
      const since = new Date(Number(leaving.updatedAt / 1000n)).toUTCString()
      await office.consumers.delete(channel, leaving.consumerId, since)
      expect(await restoreAll(ids)).toEqual(
        new Map([
          [ids[1], 'letter_in_flight'],
          [ids[4], 'letter_message_gone'],
          [ids[5], 'letter_consumer_gone'],
        ]),
      )
      const states = await Promise.all(jobs.map(async (job) => (await office.job(job))?.state ?? null))
      expect(states).toEqual([JOB.dead, JOB.inFlight, JOB.dead, JOB.dead, null, null])
      expect(await office.counted(consumer)).toEqual({ inFlight: 1 })
      expect(await office.deadCount(consumer)).toBe(3)
      await office.expectVerified()
    })
  })
})
