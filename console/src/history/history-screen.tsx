/** History. */
import { Page } from '../kit/page.tsx'

export function HistoryScreen() {
  return <Page title="History">{null}</Page>
}
