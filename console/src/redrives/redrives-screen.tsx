/** Redrives. */
import { Page } from '../kit/page.tsx'

export function RedrivesScreen() {
  return <Page title="Redrives">{null}</Page>
}
