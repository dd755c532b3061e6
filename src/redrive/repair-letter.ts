/** What a recipe makes of one letter. */
import type { Edit, Letter } from '../letters/letter.ts'
import type { Recipe } from './repair/recipe.ts'
import type { Repairer } from './repair/repairer.ts'

/** The edit to send it with, or why it must not be sent. */
export interface LetterRepair {
  /** null: it stays as it is. */
  readonly edit: Edit | null
  readonly refusal: string | null
}

/** Applies a recipe to a letter as a retry would send it now. */
export async function repairLetter(
  repairer: Repairer,
  recipe: Recipe | null,
  letter: Letter,
): Promise<LetterRepair> {
  if (recipe === null) return { edit: null, refusal: null }
  const { source, encoding, kind, reference, editedHeaders } = letter
  const payload = letter.editedPayload ?? letter.payload
  const [result] = await repairer.repair(recipe, [
    { source, encoding, kind, reference, ...editedHeaders, payload },
  ])
  if (result?.ok !== true) return { edit: null, refusal: result?.reason ?? 'the recipe gives nothing' }
  const { repaired } = result
  const isChanged = repaired.payload !== null || Object.keys(repaired.headers).length > 0
  return { edit: isChanged ? repaired : null, refusal: null }
}
