/** The first letters of a plan as they would be sent. */
import { BartlebyError } from '../../core/errors.ts'
import type { SourceName } from '../../letters/kinds.ts'
import type { Edit, Letter, Outgoing } from '../../letters/letter.ts'
import { readLetterById } from '../../letters/lists/detail.ts'
import { type LetterSource, NO_EDITS, onlyOne, outgoingOf } from '../../letters/source.ts'
import { insistOnStatus } from '../../letters/transitions.ts'
import type { Database } from '../../store/database.ts'
import { isChanged } from '../driving/eligibility.ts'
import { reasonOf } from '../driving/obstacles.ts'
import { isSending, type Redrive, type SampleLetter } from '../redrive.ts'
import type { Recipe } from '../repair/recipe.ts'
import type { Repairer } from '../repair/repairer.ts'
import { LANE_START, readLanes } from '../rows/lanes.ts'
import { type LaneLetter, nextLetters } from '../rows/members.ts'

interface SampleParts {
  readonly db: Database
  readonly sources: ReadonlyMap<SourceName, LetterSource>
  readonly repairer: Repairer
}

const SAMPLE = 20
const MOST_LANES = 50

/** In capture order. Writes nothing. */
export async function sampleOf(parts: SampleParts, redrive: Redrive): Promise<SampleLetter[]> {
  const { db } = parts
  const first = await db.session('redrive.sample', async (session) => {
    const lanes = await readLanes(session, [redrive.number])
    const heads: LaneLetter[] = []
    for (const lane of lanes.slice(0, MOST_LANES))
      heads.push(...(await nextLetters(session, lane, LANE_START, SAMPLE)))
    return heads.sort(inOrder).slice(0, SAMPLE)
  })
  const sample: SampleLetter[] = []
  for (const { letter: id } of first) {
    const letter = await db.session('redrive.letterOfSample', (session) => readLetterById(session, id))
    if (letter !== null) sample.push(await sampleLetter(parts, redrive, letter))
  }
  return sample
}

const inOrder = (a: LaneLetter, b: LaneLetter): number =>
  a.capturedAt !== b.capturedAt ? (a.capturedAt < b.capturedAt ? -1 : 1) : a.letter < b.letter ? -1 : 1

async function sampleLetter(parts: SampleParts, redrive: Redrive, letter: Letter): Promise<SampleLetter> {
  const { engine, rowKey, instanceId, errorMessage } = letter
  const facts = { key: { engine, rowKey }, instanceId, errorMessage }
  const nothing = { ...facts, outgoing: null, before: null, refusal: null }
  if (!isSending(redrive.action)) return nothing
  try {
    const { edit, refusal } = await repairLetter(parts.repairer, redrive.recipe, letter)
    if (refusal !== null) return { ...nothing, refusal }
    const { queue, encoding, kind, reference, payload } = await render(parts, redrive, letter, edit)
    return {
      ...facts,
      outgoing: { queue, encoding, kind, reference, payload },
      before: redrive.recipe === null ? null : { payload: letter.editedPayload ?? letter.payload },
      refusal: null,
    }
  } catch (error) {
    if (!(error instanceof BartlebyError)) throw error
    return { ...nothing, refusal: reasonOf(error) }
  }
}

async function render(
  { db, sources }: SampleParts,
  { action, queue }: Redrive,
  letter: Letter,
  edit: Edit | null,
): Promise<Pick<Outgoing, 'queue' | 'encoding' | 'kind' | 'reference' | 'payload'>> {
  const { id } = letter
  // Planning has checked that the queue exists.
  if (action === 'move') return outgoingOf(letter, { letter, queue: queue ?? '', edit })
  const source = sources.get(letter.source)
  if (source === undefined) throw new Error(`no source is named '${letter.source}'`)
  insistOnStatus(letter, 'retry')
  const edits = edit === null ? NO_EDITS : new Map([[id, edit]])
  return outgoingOf(letter, onlyOne(await source.render(db.session.bind(db), [letter], edits)))
}

/** The edit that a recipe makes of a letter, or why it must not be sent. */
async function repairLetter(
  repairer: Repairer,
  recipe: Recipe | null,
  letter: Letter,
): Promise<{ readonly edit: Edit | null; readonly refusal: string | null }> {
  if (recipe === null) return { edit: null, refusal: null }
  const { source, encoding, kind, reference, editedHeaders } = letter
  const payload = letter.editedPayload ?? letter.payload
  const [result] = await repairer.repair(recipe, [
    { source, encoding, kind, reference, ...editedHeaders, payload },
  ])
  if (result?.ok !== true) return { edit: null, refusal: result?.reason ?? 'the recipe gives nothing' }
  return { edit: isChanged(result.repaired) ? result.repaired : null, refusal: null }
}
