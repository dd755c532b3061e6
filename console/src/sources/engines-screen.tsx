/** Engines. */
import { Page } from '../kit/page.tsx'

export function EnginesScreen() {
  return <Page title="Engines">{null}</Page>
}
