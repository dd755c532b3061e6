/** Overview. */
import { Page } from '../kit/page.tsx'

export function OverviewScreen() {
  return <Page title="Overview">{null}</Page>
}
