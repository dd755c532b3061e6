/** Who is signed in, and what this browser should do for them: times in UTC or local, the documents, signing out. */
import { Anchor, Button, Popover, SegmentedControl, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { call, reasonOf } from '../api/call.ts'
import { sessionQuery } from '../api/queries.ts'
import { forgetTab } from '../kit/kept.ts'
import { useSession } from '../kit/role.tsx'
import type { Zone } from '../time/format.ts'
import { useTime } from '../time/time.tsx'
import { useToasts } from '../toasts/toasts.tsx'

export function UserMenu() {
  const session = useSession()
  const { name, role, reach, needsToken, version } = session
  const { zone, setZone } = useTime()
  const client = useQueryClient()
  const { show } = useToasts()
  const signOut = async () => {
    try {
      await call('DELETE', '/api/session')
    } catch (error) {
      return show({ title: 'You are still signed in', message: reasonOf(error), tone: 'failed' })
    }
    client.clear()
    // Drafts, runs and what was selected are not for whoever signs in next.
    forgetTab()
    window.location.assign('/')
  }
  // The sign-in page takes the place of the console until somebody has signed in, or loads it anew.
  const signIn = () => client.setQueryData(sessionQuery.queryKey, { ...session, signedIn: false })
  const hasSignedIn = needsToken || name !== 'anyone'
  return (
    <Popover position="bottom-end" trapFocus returnFocus shadow="md">
      <Popover.Target>
        <Button size="compact-sm" variant="default" className="user">
          {name ?? 'nobody'}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="You and this browser">
        <Stack gap="sm" align="flex-start">
          <div>
            <Text size="sm" fw={600}>
              {name ?? 'nobody'}
            </Text>
            <Text size="xs" c="var(--quiet)">
              Role {role ?? 'none'} · Bartleby {version}
            </Text>
          </div>
          <SegmentedControl
            size="xs"
            aria-label="Times in"
            data={[
              { value: 'utc', label: 'Times in UTC' },
              { value: 'local', label: 'Local times' },
            ]}
            value={zone}
            onChange={(chosen) => setZone(chosen as Zone)}
          />
          <Anchor href="/docs" size="sm">
            Documentation of the API
          </Anchor>
          {reach === 'all-but-kafka' && (
            <Button size="compact-sm" variant="default" onClick={signIn}>
              Sign in to act on letters of Kafka
            </Button>
          )}
          {hasSignedIn && (
            <Button size="compact-sm" variant="default" onClick={() => void signOut()}>
              Sign out
            </Button>
          )}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}
