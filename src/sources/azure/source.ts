/** The way back of letters that came from an account, as the office sees it, and what acts on them leave to be written to their entities. */
import { BartlebyError, failure } from '../../core/errors.ts'
import { formatMicros } from '../../core/timestamp.ts'
import { readContents } from '../../letters/contents.ts'
import type { Letter, LetterId } from '../../letters/letter.ts'
import type { LetterKey } from '../../letters/shapes.ts'
import type { Departing, LetterSource, Reading, Refused, Rendered, Sent } from '../../letters/source.ts'
import type { Session } from '../../store/database.ts'
import { isTrouble } from './account.ts'
import type { Azure } from './azure.ts'
import { AZURE } from './parts.ts'
import {
  type EntityRow,
  entitiesOf,
  forgetWrites,
  letterOfKey,
  noteUnwritten,
  type PendingWrite,
  putAtRest,
  writeOf,
} from './register.ts'
import { STATE } from './schema.ts'
import { isHeld } from './take-in.ts'
import { letBe, refusalOf } from './way-back.ts'

/** `azure` gives null where no account is configured: letters can be discarded all the same. */
export function azureLetterSource(azure: () => Azure | null): LetterSource {
  return {
    name: AZURE,
    async render(read, letters, edits) {
      const way = azure()
      if (way === null) return letters.map((letter) => ({ letter, refusal: failure('azure_not_configured') }))
      const lost = await missingQueues(way, letters)
      const known = await statesOf(read, letters)
      const contents = await read('azure.contents', (session) =>
        readContents(
          session,
          letters.map(({ id }) => id),
        ),
      )
      return letters.map((letter): Rendered | Refused => {
        const { id, originalQueue: queue, engine } = letter
        const state = known.get(id)
        if (state === undefined)
          return {
            letter,
            refusal: failure('letter_entity_gone', {
              table: way.settings.dlqTableName,
              rowKey: letter.sourceId,
            }),
          }
        if (queue === null) return { letter, refusal: failure('letter_without_queue', { engine }) }
        if (state === STATE.uncertain) return { letter, refusal: failure('letter_send_unknown', { queue }) }
        const refusal = lost.get(queue)
        if (refusal !== undefined) return { letter, refusal }
        const edit = edits.get(id) ?? null
        const payload = edit?.payload ?? contents.get(id)?.payload
        return {
          letter,
          queue,
          edit,
          ...(payload !== undefined && { content: { payload: way.contentOf(letter, payload) } }),
        }
      })
    },
    // One after the other: a send is three transactions and three calls, and letters of a redrive come one by one.
    async sendOutside(letters, edits, sending) {
      const answers: (Sent | Refused)[] = []
      for (const letter of letters) {
        try {
          const way = azure()
          if (way === null) throw failure('azure_not_configured')
          answers.push(await way.send(letter, edits.get(letter.id) ?? null, sending))
        } catch (error) {
          if (!(error instanceof BartlebyError)) throw error
          answers.push({ letter, refusal: error })
        }
      }
      return answers
    },
    async named(session, engine, rowKey) {
      return letterOfKey(session, azure()?.dlqTable ?? null, { partitionKey: engine, rowKey })
    },
    remarks: remarksOn,
    // What is in a queue belongs to its engine.
    takeBack: async (_work, letters) => letters.map((letter) => ({ letter, deliveries: 0 })),
    async moved(work, letters, act) {
      const { tx, now } = work
      const ids = letters.map(({ id }) => id)
      if (act === 'remove') {
        // That they were taken in stays on file.
        await putAtRest(tx, ids)
        await forgetWrites(tx, ids)
        return
      }
      await letBe(tx, ids)
      await noteUnwritten(tx, ids, now)
      work.afterCommit(() => azure()?.written())
    },
  }
}

/** What is under way with the message of a letter, and what its entity does not say yet. */
async function remarksOn(session: Session, { id, engine, rowKey }: Letter): Promise<readonly string[]> {
  const entity = (await entitiesOf(session, [id])).get(id)
  if (entity === undefined) return []
  const write = await writeOf(session, entity.sourceId)
  return [...remarkOnSend(entity, { engine, rowKey }), ...(write === null ? [] : [remarkOnWrite(write)])]
}

function remarkOnSend({ state, queue }: EntityRow, { engine, rowKey }: LetterKey): readonly string[] {
  if (isHeld({ state })) return [`Its message is being sent to queue '${queue}'.`]
  if (state !== STATE.uncertain) return []
  return [
    `Nobody knows whether its message reached queue '${queue}'. Look there, and say so: bartleby azure settle ${engine} '${rowKey}' with --arrived or --lost.`,
  ]
}

const remarkOnWrite = ({ actedAt, attempts, trouble }: PendingWrite): string =>
  `Not yet written to its entity in Azure, since ${formatMicros(actedAt)}${attempts === 0 ? '' : `; tried ${attempts} times, the last time: ${trouble}`}.`

const statesOf = (read: Reading, letters: readonly Departing[]): Promise<ReadonlyMap<LetterId, number>> =>
  read('azure.states', async (session) => {
    const rows = await entitiesOf(
      session,
      letters.map(({ id }) => id),
    )
    return new Map([...rows].map(([id, { state }]) => [id, state]))
  })

/** Queues of letters that are gone, or that cannot be asked for. */
async function missingQueues(
  { account }: Azure,
  letters: readonly Departing[],
): Promise<ReadonlyMap<string, BartlebyError>> {
  const refusals = new Map<string, BartlebyError>()
  const queues = new Set(letters.flatMap(({ originalQueue }) => originalQueue ?? []))
  for (const queue of queues) {
    try {
      await account.call((abortSignal) => account.queue(queue).getProperties({ abortSignal }))
    } catch (error) {
      if (!isTrouble(error)) throw error
      refusals.set(queue, refusalOf(error, queue))
    }
  }
  return refusals
}
