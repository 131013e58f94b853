echo 0 > /proc/sys/vm/nr_hugepages
