/** The letter as the server tells it, and the commands that do the same as this page. */
import { Stack, Text, Title } from '@mantine/core'
import { useMemo } from 'react'
import { letterCommand, retryWithCurl } from '../acts/commands.ts'
import { CopiedCommand } from '../acts/copied-command.tsx'
import type { LetterDetail } from '../api/types.ts'
import { useSession } from '../kit/role.tsx'
import { TextView } from './payload-view.tsx'

export function RawTab({ letter }: { readonly letter: LetterDetail }) {
  const { needsToken } = useSession()
  const raw = useMemo(() => JSON.stringify(letter, null, 2), [letter])
  return (
    <Stack gap="md">
      <section aria-label="Commands">
        <Title order={2} size="h5" mb={4}>
          Commands
        </Title>
        <Text size="sm" mb={4}>
          As curl{needsToken ? ', with a token in BARTLEBY_TOKEN' : ''}
        </Text>
        <CopiedCommand text={retryWithCurl(letter, window.location.origin, needsToken)} label="as curl" />
        <Text size="sm" mt="xs" mb={4}>
          As a command
        </Text>
        <CopiedCommand text={letterCommand('retry', letter)} label="as CLI" />
      </section>
      <section aria-label="JSON">
        <Title order={2} size="h5" mb={4}>
          JSON
        </Title>
        <TextView text={raw} />
      </section>
    </Stack>
  )
}
