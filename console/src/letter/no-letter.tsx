/** In the place of a letter that is not on file. */
import type { LetterKey } from '../api/types.ts'
import { LettersLink } from '../kit/links.tsx'
import { Empty } from '../kit/page.tsx'

export function NoLetter({ letter: { engine } }: { readonly letter: LetterKey }) {
  return (
    <Empty title="Letter not found.">
      Its address may be cut off, it may belong to another server, or it was resolved so long ago that it is
      not kept any more. Look for it among{' '}
      <LettersLink filter={{ engine }}>all letters of {engine}</LettersLink>.
    </Empty>
  )
}
