/** The frame of a screen: its title, what can be done, and what is shown while there is nothing, or something went wrong. */
import { Alert, Button, Group, Loader, Stack, Text, Title } from '@mantine/core'
import { type ReactNode, useEffect } from 'react'
import { CallFailure, reasonOf } from '../api/call.ts'
import { useToasts } from '../toasts/toasts.tsx'

export interface PageProps {
  readonly title: string
  /** Beside the title. */
  readonly beside?: ReactNode
  /** Under the title, in one sentence. */
  readonly lead?: ReactNode
  /** The screen opens with a sentence of its own; the title is for the tab and for screen readers. */
  readonly isTitleHidden?: boolean
  readonly children: ReactNode
}

/** A screen with its heading; the tab of the browser is called as it is, and so it is announced. */
export function Page({ title, beside, lead, isTitleHidden = false, children }: PageProps) {
  const { announce } = useToasts()
  useEffect(() => {
    document.title = `${title} · Bartleby`
    announce(title)
  }, [title, announce])
  return (
    <Stack gap="md" className="page">
      <Group
        justify="space-between"
        align="flex-start"
        wrap="wrap"
        className={isTitleHidden ? 'announcer' : undefined}
      >
        <div className="page-title">
          <Title order={1} size="h3">
            {title}
          </Title>
          {lead !== undefined && (
            <Text c="var(--quiet)" size="sm" component="div" className="prose">
              {lead}
            </Text>
          )}
        </div>
        {beside}
      </Group>
      {children}
    </Stack>
  )
}

/** A part of a screen, with a heading of its own. */
export function Panel({
  title,
  beside,
  children,
}: {
  readonly title?: string
  readonly beside?: ReactNode
  readonly children: ReactNode
}) {
  return (
    <section className="panel" {...(title === undefined ? {} : { 'aria-label': title })}>
      <Stack gap="xs">
        {title !== undefined && (
          <Group justify="space-between" mih={28}>
            <Title order={2} size="h5">
              {title}
            </Title>
            {beside}
          </Group>
        )}
        {children}
      </Stack>
    </section>
  )
}

/** Nothing to show: what that means, and what to do next. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <Text fw={600}>{title}</Text>
      <Text c="var(--quiet)" size="sm" component="div" mt={4} className="prose">
        {children}
      </Text>
    </div>
  )
}

/** A read that failed, with a way to try again. */
export function Trouble({ error, retry }: { readonly error: unknown; readonly retry?: () => void }) {
  return (
    <Alert color="red" title="Could not load" role="alert">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{reasonOf(error)}</Text>
        {retry !== undefined && (
          <Button size="compact-sm" variant="default" onClick={retry}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  )
}

/** While the first answer is awaited. */
export function Waiting({ what }: { readonly what: string }) {
  return (
    <Group gap="sm" p="md" role="status">
      <Loader size="sm" />
      <Text size="sm">Reading {what}…</Text>
    </Group>
  )
}

interface Read<Answer> {
  readonly data: Answer | undefined
  readonly error: unknown
  refetch(): unknown
}

/** Whether the server said that there is no such thing. */
export const isUnknown = (error: unknown): boolean => error instanceof CallFailure && error.status === 404

/** Shows what was read; before that, that it is awaited; instead of that, why it failed, or that there is no such thing. */
export function Shown<Answer>({
  read,
  what,
  unknown,
  children,
}: {
  readonly read: Read<Answer>
  readonly what: string
  /** Where the server knows no such thing: to try again would change nothing. */
  readonly unknown?: ReactNode
  readonly children: (answer: Answer) => ReactNode
}) {
  if (read.data !== undefined) return children(read.data)
  if (unknown !== undefined && isUnknown(read.error)) return unknown
  if (read.error !== null) return <Trouble error={read.error} retry={() => void read.refetch()} />
  return <Waiting what={what} />
}
