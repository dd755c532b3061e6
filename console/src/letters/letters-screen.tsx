/** Letters. */
import { Page } from '../kit/page.tsx'

export function LettersScreen() {
  return <Page title="Letters">{null}</Page>
}
