/**
 * Kill -9 around capture, retry, reopen, discard and fold, again and again on one store: after each crash `verify` is
 * clean and every letter is where its client was told it is. 2 crashes on each store; 25 in `npm run prove`.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { isProof, sizeOf } from '../world/limits.ts'
import { MortalServer } from '../world/mortal-server.ts'
import { seededRandom } from '../world/random.ts'
import { stores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'
import { Story } from './letters-story.ts'

const ROUNDS = sizeOf(2, 25)
const STORIES = 6

/** On PostgreSQL every day: what only SQLite does in a crash is the file's, which kill.test.ts looks at. */
const KILLED = isProof ? stores : stores.filter(({ name }) => name === 'postgres')

describe.each(KILLED)('an office on $name that is killed at work', (store) => {
  it(`neither loses nor doubles a letter over ${ROUNDS} crashes`, async () => {
    const random = seededRandom()
    const seed = `BARTLEBY_TEST_SEED=${random.seed}`
    const place = await store.fresh()
    const mortal = new MortalServer(place.url)
    const stories = Array.from({ length: STORIES }, (_, n) => new Story(`story-${n}`, random))
    const successes = () => stories.reduce((sum, story) => sum + story.successes, 0)
    try {
      await mortal.start()
      for (const story of stories) {
        story.attach(mortal.wire)
        await story.createQueues()
      }
      for (let round = 1; round <= ROUNDS; round++) {
        let stopping = false
        const telling = Promise.all(stories.map((story) => story.go(() => stopping)))
        // A failure is told below; until then nobody listens.
        telling.catch(() => {})
        const enough = successes() + random.whole(100, 400)
        const ended = telling.then(
          () => true,
          () => true,
        )
        while (successes() < enough && !(await Promise.race([ended, pause(5, false)])));
        await pause(random.whole(0, 20))
        await mortal.kill(() => {
          stopping = true
          return telling
        })
        await mortal.start({ isLast: round === ROUNDS })
        for (const story of stories) story.attach(mortal.wire)
        expect(await violationsIn(place.url), `${seed}, round ${round}`).toEqual([])
        for (const story of stories) {
          expect(await story.audit(round === ROUNDS), `${seed}, round ${round}`).toEqual([])
        }
      }
      const lost = stories.reduce((sum, { ledger }) => sum + ledger.lost, 0)
      expect(successes()).toBeGreaterThan(ROUNDS * 50)
      expect(lost, 'calls that were cut off').toBeGreaterThan(ROUNDS)
      expect(await mortal.server.term()).toBe(0)
      expect(await violationsIn(place.url), seed).toEqual([])
    } finally {
      await mortal.end()
      await place.dispose()
    }
  })
})
