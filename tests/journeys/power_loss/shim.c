/* Stands between a program and its disk, and remembers what a power cut would leave.
 *
 * What is synced is on the disk; nothing else is. After each fsync and fdatasync of a file in the watched folder, the
 * disk as it is then is written to the next numbered folder (a generation). A new name is on the disk only once its
 * folder was synced, and so is the end of an old one: POSIX promises no more.
 *
 * BATON_POWER_LIVE   the watched folder, absolute
 * BATON_POWER_DISK   where the generations go; they share the files that did not change
 * BATON_POWER_LIE    a name's ending: syncs of such files are answered at once and never happen
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned generation;

static void give_up(const char *what) {
  perror(what);
  abort(); /* a disk that remembers wrongly proves nothing */
}

static int ends_with(const char *text, const char *ending) {
  size_t length = strlen(text), tail = strlen(ending);
  return length >= tail && strcmp(text + length - tail, ending) == 0;
}

static void place(char *out, unsigned number, const char *folder, const char *name) {
  const char *disk = getenv("BATON_POWER_DISK");
  int length = snprintf(out, PATH_MAX, "%s/%06u/%s/%s", disk, number, folder, name);
  if (length < 0 || length >= PATH_MAX) give_up("a path is too long");
}

static void copy(const char *from, const char *to) {
  char buffer[1 << 16];
  ssize_t count;
  unlink(to); /* the generation before this one may hold the same file */
  int in = open(from, O_RDONLY | O_CLOEXEC);
  int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (in < 0 || out < 0) give_up(to);
  while ((count = read(in, buffer, sizeof buffer)) > 0)
    if (write(out, buffer, (size_t)count) != count) give_up(to);
  if (count < 0) give_up(from);
  close(in);
  close(out);
}

/* Each generation has two folders: `named`, what a restart finds, and `nameless`, synced content without a synced name. */
static void share(unsigned from, unsigned to, const char *folder) {
  char old[PATH_MAX], new[PATH_MAX];
  place(new, to, "", "");
  mkdir(new, 0700);
  place(new, to, folder, "");
  if (mkdir(new, 0700) < 0) give_up(new);
  if (from == 0) return;
  place(old, from, folder, "");
  DIR *list = opendir(old);
  if (!list) give_up(old);
  for (struct dirent *entry; (entry = readdir(list));) {
    if (entry->d_name[0] == '.') continue;
    place(old, from, folder, entry->d_name);
    place(new, to, folder, entry->d_name);
    if (link(old, new) < 0) give_up(new);
  }
  closedir(list);
}

static void next_generation(void) {
  share(generation, generation + 1, "named");
  share(generation, generation + 1, "nameless");
  generation++;
}

static void file_synced(const char *live, const char *name) {
  char named[PATH_MAX], nameless[PATH_MAX];
  next_generation();
  place(named, generation, "named", name);
  place(nameless, generation, "nameless", name);
  copy(live, access(named, F_OK) == 0 ? named : nameless);
}

/* Names that came are there now; names that went are gone. */
static void folder_synced(const char *folder) {
  char old[PATH_MAX], new[PATH_MAX], live[PATH_MAX];
  next_generation();
  place(old, generation, "nameless", "");
  DIR *list = opendir(old);
  if (!list) give_up(old);
  for (struct dirent *entry; (entry = readdir(list));) {
    if (entry->d_name[0] == '.') continue;
    place(old, generation, "nameless", entry->d_name);
    place(new, generation, "named", entry->d_name);
    if (rename(old, new) < 0) give_up(new);
  }
  closedir(list);
  place(old, generation, "named", "");
  list = opendir(old);
  if (!list) give_up(old);
  for (struct dirent *entry; (entry = readdir(list));) {
    if (entry->d_name[0] == '.') continue;
    snprintf(live, sizeof live, "%s/%s", folder, entry->d_name);
    place(new, generation, "named", entry->d_name);
    if (access(live, F_OK) < 0) unlink(new);
  }
  closedir(list);
}

static int synced(int fd, long call) {
  const char *watched = getenv("BATON_POWER_LIVE"), *lie = getenv("BATON_POWER_LIE");
  char link_name[64], path[PATH_MAX];
  snprintf(link_name, sizeof link_name, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link_name, path, sizeof path - 1);
  if (!watched || length < 0) return (int)syscall(call, fd);
  path[length] = '\0';
  size_t prefix = strlen(watched);
  if (strncmp(path, watched, prefix) != 0) return (int)syscall(call, fd);
  if (lie && ends_with(path, lie)) return 0;
  int answer = (int)syscall(call, fd);
  if (answer == 0) {
    pthread_mutex_lock(&lock);
    if (path[prefix] == '\0') folder_synced(watched);
    else if (path[prefix] == '/' && !strchr(path + prefix + 1, '/')) file_synced(path, path + prefix + 1);
    pthread_mutex_unlock(&lock);
  }
  return answer;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }
