/** Settings. */
import { Page } from '../kit/page.tsx'

export function SettingsScreen() {
  return <Page title="Settings">{null}</Page>
}
