/** Signature. */
import { Page } from '../kit/page.tsx'

export function SignatureScreen() {
  return <Page title="Signature">{null}</Page>
}
