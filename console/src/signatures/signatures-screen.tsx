/** Signatures. */
import { Page } from '../kit/page.tsx'

export function SignaturesScreen() {
  return <Page title="Signatures">{null}</Page>
}
