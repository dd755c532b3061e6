/** Letter. */
import { Page } from '../kit/page.tsx'

export function LetterScreen() {
  return <Page title="Letter">{null}</Page>
}
