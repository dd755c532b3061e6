/** What this source promises, and `verify` proves: letters and their entities, and what is not yet written. */
import type { Finding, FoundRow, Invariant, Side } from '../../letters/audit/invariant.ts'
import { read } from '../../letters/audit/walk.ts'
import { STATUS } from '../../letters/letter.ts'
import { AZURE } from './parts.ts'
import { STATE } from './schema.ts'

/** Current entities, by the numbers of their letters; the index has them in this order. */
const ENTITIES: Side = {
  statement: read(
    'azureEntities',
    `SELECT letter_id AS key, source_id AS entity, state, engine, claim FROM bartleby.azure_entities WHERE is_current = 1 ORDER BY letter_id`,
  ),
}

const HELD: readonly number[] = [STATE.claimed, STATE.sending]

/** AZ1: what is claimed or being sent is pending and held, and under a claim; what was sent is Resolved. */
const entities: Invariant = {
  id: 'AZ1',
  promise: 'a letter of Azure has one current entity, and both say the same',
  beside: { azureEntities: ENTITIES },
  ofLetters: ({ drawers }) => ({
    *look({ id, letter, beside: { azureEntities = [] } }) {
      // The letter was removed, and its entity stays known: it must not be taken in again.
      if (letter === undefined || drawers.get(Number(letter.drawer))?.source !== AZURE) return
      const [entity, another] = azureEntities
      if (entity === undefined || another !== undefined)
        yield apart(id, letter, `${azureEntities.length} current entities`)
      else yield* faultsOf(id, letter, entity)
    },
  }),
}

const apart = (key: FoundRow[string], { status, leased }: FoundRow, what: string): Finding => ({
  what: `letter ${key} of Azure has ${what}`,
  row: { letter: key, status, leased },
})

function* faultsOf(
  key: FoundRow[string],
  letter: FoundRow,
  { entity, state: at, engine, claim }: FoundRow,
): Iterable<Finding> {
  const state = Number(at)
  const isHeld = HELD.includes(state)
  const isPending = Number(letter.status) === STATUS.Pending
  const row = { letter: key, entity, state, status: letter.status, leased: letter.leased }
  if (isHeld !== (Number(letter.leased) === 1))
    yield { what: `letter ${key} and its entity do not agree on whether it is being sent`, row }
  if ((isHeld || state === STATE.uncertain) && (!isPending || claim === null))
    yield {
      what: `letter ${key} is not pending or under no claim, and its message is in state ${state}`,
      row,
    }
  if (state === STATE.sent && letter.resolution !== 'retry')
    yield { what: `the message of letter ${key} was sent, and the letter was not resolved by a retry`, row }
  if (letter.engine !== engine)
    yield { what: `letter ${key} is of engine '${letter.engine}', and its entity of '${engine}'`, row }
}

/** What is not yet written, by the numbers of letters. */
const WRITES: Side = {
  statement: read(
    'azureWrites',
    'SELECT letter_id AS key, source_id AS entity FROM bartleby.azure_writes ORDER BY letter_id',
  ),
}

/** AZ2: what was forgotten with a letter is not written to its entity any more. */
const writes: Invariant = {
  id: 'AZ2',
  promise: 'what is not yet written to an entity is of a letter that there is',
  beside: { azureWrites: WRITES },
  ofLetters: () => ({
    *look({ id, letter, beside: { azureWrites = [] } }) {
      if (letter !== undefined) return
      for (const { entity } of azureWrites)
        yield {
          what: `entity '${entity}' has to be written for letter ${id}, which is not there`,
          row: { letter: id, entity },
        }
    },
  }),
}

export const azureInvariants: readonly Invariant[] = [entities, writes]
