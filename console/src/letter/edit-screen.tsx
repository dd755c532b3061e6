/** Edit. */
import { Page } from '../kit/page.tsx'

export function EditScreen() {
  return <Page title="Edit">{null}</Page>
}
