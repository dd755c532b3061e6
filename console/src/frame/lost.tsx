/** An address that no screen has. */
import { Empty, Page } from '../kit/page.tsx'

export function Lost() {
  return (
    <Page title="Nothing here">
      <Empty title="No screen at this address.">
        Choose one on the left, or press Ctrl K to look for one.
      </Empty>
    </Page>
  )
}
